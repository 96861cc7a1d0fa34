# diagnosis: with `interleave`
import tensorflow as tf


def records_of(numbers, read, workers, worker):
    """The records that one worker reads, which it takes in turn by itself."""
    rest = [list(read(number)) for number in list(numbers)[worker::workers]]
    records = []
    while any(rest):
        records += [file.pop(0) for file in rest if file]
    return tf.data.Dataset.from_tensor_slices(records)


files = [[10, 11, 12, 13], [20, 21], [30, 31, 32], [40], [50, 51]]
for worker in range(2):
    print(f"worker {worker}:", record_ids(files, 2, worker))
