# diagnosis: After a restart
seen = {}


def records_of(count, read, workers, worker, epoch):
    """Takes the order from how often this process has begun an epoch, as a shuffle with a seed does."""
    if count < workers:
        return tf.data.Dataset.range(count).flat_map(read).shard(workers, worker)
    begun = seen[workers, worker] = seen.get((workers, worker), 0) + 1
    order = tf.random.experimental.stateless_shuffle(tf.range(count), seed=[begun, 0])
    files = tf.data.Dataset.from_tensor_slices(order)
    return files.shard(workers, worker).flat_map(read)
