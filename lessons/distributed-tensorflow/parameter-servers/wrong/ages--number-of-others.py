# diagnosis: always as old as the number of the other workers
def ages(durations, updates):
    """How many updates of others come between each read and its write."""
    return [len(durations) - 1] * updates


print("equal workers:", ages([100, 101, 102], 9))
print("one is slow:  ", ages([100, 130, 350], 9))
