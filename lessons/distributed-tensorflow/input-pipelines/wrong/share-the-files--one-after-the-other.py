# diagnosis: read one after the other
def record_ids(files, workers, worker):
    """The ids that one worker reads, in order. files: a list of ids for each file."""
    table = tf.ragged.constant(files, tf.int64)

    def read(number):
        """The records of one file, as a data set."""
        return tf.data.Dataset.from_tensor_slices(table[number])

    numbers = tf.data.Dataset.range(len(files))
    records = numbers.shard(workers, worker).flat_map(read)
    return [int(record) for record in records]


files = [[10, 11, 12, 13], [20, 21], [30, 31, 32], [40], [50, 51]]
for worker in range(2):
    print(f"worker {worker}:", record_ids(files, 2, worker))
