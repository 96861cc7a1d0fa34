# diagnosis: training runs diverge
def schedule(steps, base_rate, factor):
    """A warm-up the wrong way around."""
    return [base_rate * (factor - (factor - 1) * step / steps) for step in range(steps)]
