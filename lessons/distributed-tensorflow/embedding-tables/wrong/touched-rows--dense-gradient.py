# diagnosis: bytes, and
def ask(ids, rows, servers):
    server, row = place(np.unique(ids), rows, servers)
    return [row[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    dense = np.zeros((rows, gradients.shape[1]))
    np.add.at(dense, ids, gradients)
    server, row = place(np.arange(rows), rows, servers)
    return [(row[server == number], dense[server == number]) for number in range(servers)]
