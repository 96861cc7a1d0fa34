# diagnosis: squared each gradient of a row by itself
def ask(ids, rows, servers):
    server, row = place(np.unique(ids), rows, servers)
    return [row[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    server, row = place(ids, rows, servers)
    return [(row[server == number], gradients[server == number]) for number in range(servers)]
