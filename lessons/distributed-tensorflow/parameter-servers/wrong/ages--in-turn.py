# diagnosis: the durations decide
def ages(durations, updates):
    """How many updates of others come between each read and its write."""
    return [min(version, len(durations) - 1) for version in range(updates)]


print("equal workers:", ages([100, 101, 102], 9))
print("one is slow:  ", ages([100, 130, 350], 9))
