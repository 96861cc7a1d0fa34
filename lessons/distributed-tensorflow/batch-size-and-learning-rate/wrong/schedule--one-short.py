# diagnosis: one for each step
def schedule(steps, base_rate, factor):
    return [base_rate * (1 + (factor - 1) * min(1.0, 4 * step / steps)) for step in range(1, steps)]
