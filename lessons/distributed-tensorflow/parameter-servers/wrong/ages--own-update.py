# diagnosis: own update doesn't make
def ages(durations, updates):
    """How many updates of others come between each read and its write."""
    next_write = list(durations)
    has_read = [0] * len(durations)
    result = []
    for version in range(updates):
        worker = next_write.index(min(next_write))
        result.append(version - has_read[worker])
        has_read[worker] = version
        next_write[worker] += durations[worker]
    return result


print("equal workers:", ages([100, 101, 102], 9))
print("one is slow:  ", ages([100, 130, 350], 9))
