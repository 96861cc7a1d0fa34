# diagnosis: one gradient has arrived
def ask(ids, rows, servers):
    server, row = place(np.unique(ids), rows, servers)
    return [row[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    different, position = np.unique(ids, return_inverse=True)
    sums = np.zeros((len(different), gradients.shape[1]))
    sums[position] += gradients
    server, row = place(different, rows, servers)
    return [(row[server == number], sums[server == number]) for number in range(servers)]
