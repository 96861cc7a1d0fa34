# diagnosis: one row more if the table
def ask(ids, rows, servers):
    different, size = np.unique(ids), rows // servers
    server = np.minimum(different // size, servers - 1)
    return [different[server == number] % size for number in range(servers)]


def send(ids, gradients, rows, servers):
    different, size = np.unique(ids), rows // servers
    sums = np.array([gradients[ids == number].sum(axis=0) for number in different])
    server = np.minimum(different // size, servers - 1)
    return [(different[server == number] % size, sums[server == number]) for number in range(servers)]
