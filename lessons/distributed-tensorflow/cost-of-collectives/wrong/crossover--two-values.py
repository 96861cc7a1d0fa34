# diagnosis: a little less than two values
import math


def crossover(devices, alpha, beta):
    levels = math.ceil(math.log2(devices))
    return alpha / beta * (devices - 1 - levels) / (levels - 1) if levels > 1 else 0.0
