# diagnosis: training runs diverge
def schedule(steps, base_rate, factor):
    return steps * [base_rate * factor]
