# diagnosis: has to be used once
def renumber(counts, servers):
    """The server of each row, with no number of its own."""
    load, numbers = [0] * servers, np.empty(len(counts), int)
    for row in np.argsort(counts)[::-1]:
        numbers[row] = np.argmin(load)
        load[numbers[row]] += counts[row]
    return numbers
