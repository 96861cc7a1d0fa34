# diagnosis: has the same files in every epoch
def records_of(count, read, workers, worker, epoch):
    if count < workers:
        return tf.data.Dataset.range(count).flat_map(read).shard(workers, worker)
    return tf.data.Dataset.range(count).shard(workers, worker).shuffle(count).flat_map(read)
