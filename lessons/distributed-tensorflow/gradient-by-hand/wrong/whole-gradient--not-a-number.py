# diagnosis: not finite numbers
def whole_gradient(reports):
    total = sum(mean * count for mean, count in reports)
    return total / sum(count for _, count in reports)
