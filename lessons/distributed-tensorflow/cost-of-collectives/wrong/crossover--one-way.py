# diagnosis: values go up and come down
import math


def crossover(devices, alpha, beta):
    levels = math.ceil(math.log2(devices))
    return alpha / beta * (2 * (devices - 1) - levels) / (levels - 2 * (devices - 1) / devices)
