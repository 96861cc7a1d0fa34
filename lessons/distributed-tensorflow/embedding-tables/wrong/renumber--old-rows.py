# diagnosis: These are the rows in their new order
def renumber(counts, servers):
    free = [list(range(len(counts)))[start:end] for start, end in blocks(len(counts), servers)]
    load = [0] * servers
    rows = np.empty(len(counts), int)
    for row in np.argsort(counts)[::-1]:
        server = min((number for number in range(servers) if free[number]), key=load.__getitem__)
        rows[free[server].pop()] = row
        load[server] += counts[row]
    return rows


def blocks(rows, servers):
    server, _ = place(np.arange(rows), rows, servers)
    ends = np.cumsum(np.bincount(server, minlength=servers))
    return zip([0, *ends[:-1]], ends)
