# diagnosis: its weight has to be 0
def padded_batches(size, records):
    steps = -(-max(numbers_of_all(len(records))) // size)
    ids = np.resize(np.array(records, int), (steps, size))
    return ids, np.ones(ids.shape)
