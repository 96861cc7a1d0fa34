# diagnosis: used for judging
from itertools import zip_longest


def record_ids(files, workers, worker):
    """The records that one worker reads, with lists instead of data sets."""
    turns = zip_longest(*files[worker::workers])
    return [record for turn in turns for record in turn if record is not None]


files = [[10, 11, 12, 13], [20, 21], [30, 31, 32], [40], [50, 51]]
for worker in range(2):
    print(f"worker {worker}:", record_ids(files, 2, worker))
