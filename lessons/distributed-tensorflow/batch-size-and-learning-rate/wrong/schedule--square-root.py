# diagnosis: times the batch
def schedule(steps, base_rate, factor):
    return steps * [base_rate * factor**0.5]
