# diagnosis: See `cycle_length` of `interleave`
def records_of(numbers, read, workers, worker):
    """The records that one worker reads. numbers: those of all files; read: makes a data set of the file of a number."""
    return numbers.shard(workers, worker).interleave(read, cycle_length=1)


files = [[10, 11, 12, 13], [20, 21], [30, 31, 32], [40], [50, 51]]
for worker in range(2):
    print(f"worker {worker}:", record_ids(files, 2, worker))
