# diagnosis: are read more than once
def records_of(count, read, workers, worker, epoch):
    if count < workers:
        return tf.data.Dataset.range(count).flat_map(read).shard(workers, worker)
    order = tf.range(count)
    numbers = tf.data.Dataset.from_tensor_slices(order).shuffle(count)
    return numbers.shard(workers, worker).flat_map(read)
