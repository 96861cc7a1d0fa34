# diagnosis: take different numbers of steps
def padded_batches(size, records):
    steps = -(-len(records) // size)
    ids, weights = np.zeros(steps * size, int), np.zeros(steps * size)
    ids[: len(records)] = records
    weights[: len(records)] = 1
    return ids.reshape(steps, size), weights.reshape(steps, size)
