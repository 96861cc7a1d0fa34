# diagnosis: more to do than the mean
def renumber(counts, servers):
    return np.arange(len(counts))
