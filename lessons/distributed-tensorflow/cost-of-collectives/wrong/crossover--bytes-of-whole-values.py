# diagnosis: one piece, not a whole value
import math


def crossover(devices, alpha, beta):
    levels = math.ceil(math.log2(devices))
    return alpha / beta * (devices - 1 - levels) / (levels - (devices - 1))
