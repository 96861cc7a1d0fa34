# diagnosis: The largest rate is 1 times
def schedule(steps, base_rate, factor):
    return steps * [base_rate]
