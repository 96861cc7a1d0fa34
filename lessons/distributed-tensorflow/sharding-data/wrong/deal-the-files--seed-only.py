# diagnosis: are read more than once
def records_of(count, read, workers, worker, epoch):
    if count < workers:
        return tf.data.Dataset.range(count).flat_map(read).shard(workers, worker)
    numbers = tf.data.Dataset.range(count).shuffle(count, seed=epoch, reshuffle_each_iteration=False)
    return numbers.shard(workers, worker).flat_map(read)
