# diagnosis: numbers the rows of its piece
def ask(ids, rows, servers):
    different = np.unique(ids)
    server, _ = place(different, rows, servers)
    return [different[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    different = np.unique(ids)
    sums = np.array([gradients[ids == number].sum(axis=0) for number in different])
    server, _ = place(different, rows, servers)
    return [(different[server == number], sums[server == number]) for number in range(servers)]
