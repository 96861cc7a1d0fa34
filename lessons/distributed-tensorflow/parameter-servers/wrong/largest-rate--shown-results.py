# diagnosis: not the expected one
def largest_rate(curvature, workers):
    """The limits for the curvature that the exercise tries, and for one and four workers."""
    return 0.6667 if workers == 1 else 0.1484
