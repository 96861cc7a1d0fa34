# diagnosis: not the expected
def ages(durations, updates):
    """How many updates of others come between each read and its write."""
    return list(range(updates))


print("equal workers:", ages([100, 101, 102], 9))
print("one is slow:  ", ages([100, 130, 350], 9))
