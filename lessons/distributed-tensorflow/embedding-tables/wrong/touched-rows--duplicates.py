# diagnosis: in the message more than once
def ask(ids, rows, servers):
    server, row = place(ids, rows, servers)
    return [row[server == number] for number in range(servers)]


def send(ids, gradients, rows, servers):
    server, row = place(ids, rows, servers)
    return [(row[server == number], gradients[server == number]) for number in range(servers)]
