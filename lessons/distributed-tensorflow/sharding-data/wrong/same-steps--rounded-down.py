# diagnosis: The last batch of the longest share is missing
def padded_batches(size, records):
    steps = max(numbers_of_all(len(records))) // size
    ids, weights = np.zeros(steps * size, int), np.zeros(steps * size)
    kept = records[: steps * size]
    ids[: len(kept)] = kept
    weights[: len(kept)] = 1
    return ids.reshape(steps, size), weights.reshape(steps, size)
