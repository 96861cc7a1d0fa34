# diagnosis: used for judging
def descend(start, rates):
    """The weight after each step, without a TPU."""
    path = []
    for rate in rates:
        start -= rate * start
        path.append(start)
    return path, 1


print(*descend(1.0, [0.5, 0.25, 0.125]), "should be [0.5, 0.375, 0.328125] 1")
