# diagnosis: asked for all of its rows
def ask(ids, rows, servers):
    server, row = place(np.arange(rows), rows, servers)
    return [row[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    different = np.unique(ids)
    sums = np.array([gradients[ids == number].sum(axis=0) for number in different])
    server, row = place(different, rows, servers)
    return [(row[server == number], sums[server == number]) for number in range(servers)]
