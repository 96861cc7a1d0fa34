# diagnosis: of all workers together
def padded_batches(size, records):
    steps = -(-sum(numbers_of_all(len(records))) // size)
    ids, weights = np.zeros(steps * size, int), np.zeros(steps * size)
    ids[: len(records)] = records
    weights[: len(records)] = 1
    return ids.reshape(steps, size), weights.reshape(steps, size)
