# diagnosis: dealt out in turn
def ask(ids, rows, servers):
    different = np.unique(ids)
    return [different[different % servers == number] // servers for number in range(servers)]


def send(ids, gradients, rows, servers):
    different = np.unique(ids)
    sums = np.array([gradients[ids == number].sum(axis=0) for number in different])
    server = different % servers
    return [(different[server == number] // servers, sums[server == number]) for number in range(servers)]
