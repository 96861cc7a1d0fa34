# diagnosis: more to do than the mean
def renumber(counts, servers):
    return np.random.default_rng(0).permutation(len(counts))
