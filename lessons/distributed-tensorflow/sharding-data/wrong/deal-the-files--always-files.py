# diagnosis: workers have nothing to read
def records_of(count, read, workers, worker, epoch):
    order = tf.random.experimental.stateless_shuffle(tf.range(count), seed=[epoch, 0])
    files = tf.data.Dataset.from_tensor_slices(order)
    return files.shard(workers, worker).flat_map(read)
