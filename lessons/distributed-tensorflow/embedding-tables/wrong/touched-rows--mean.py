# diagnosis: The gradients of a row are averaged
def ask(ids, rows, servers):
    server, row = place(np.unique(ids), rows, servers)
    return [row[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    different = np.unique(ids)
    means = np.array([gradients[ids == number].mean(axis=0) for number in different])
    server, row = place(different, rows, servers)
    return [(row[server == number], means[server == number]) for number in range(servers)]
