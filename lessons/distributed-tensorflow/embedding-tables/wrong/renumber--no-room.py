# diagnosis: more to do than the mean
def renumber(counts, servers):
    """The least busy server, however many rows it has; numbered server by server."""
    load, server = [0] * servers, np.empty(len(counts), int)
    for row in np.argsort(counts)[::-1]:
        server[row] = np.argmin(load)
        load[server[row]] += counts[row]
    numbers = np.empty(len(counts), int)
    numbers[np.argsort(server, kind="stable")] = np.arange(len(counts))
    return numbers
