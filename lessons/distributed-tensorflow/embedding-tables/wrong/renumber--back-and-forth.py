# diagnosis: more to do than the mean
def renumber(counts, servers):
    """Dealt out in turn, each second time in reverse."""
    server = np.arange(len(counts)) % (2 * servers)
    server = np.minimum(server, 2 * servers - 1 - server)
    numbers = np.empty(len(counts), int)
    numbers[np.argsort(counts)[::-1][np.argsort(server, kind="stable")]] = np.arange(len(counts))
    return numbers
