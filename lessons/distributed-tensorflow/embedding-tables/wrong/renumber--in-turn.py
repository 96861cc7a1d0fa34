# diagnosis: more to do than the mean
def renumber(counts, servers):
    """The most popular rows are dealt out to the servers in turn."""
    numbers = np.empty(len(counts), int)
    order = np.argsort(counts)[::-1]
    numbers[np.concatenate([order[number::servers] for number in range(servers)])] = np.arange(len(counts))
    return numbers
