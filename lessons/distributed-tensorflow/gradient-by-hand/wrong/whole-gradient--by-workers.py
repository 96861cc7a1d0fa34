# diagnosis: divided by the number of workers
def whole_gradient(reports):
    total = sum(mean * count for mean, count in reports if count)
    return total / len(reports)
