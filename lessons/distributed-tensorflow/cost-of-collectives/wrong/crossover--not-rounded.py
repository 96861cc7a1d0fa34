# diagnosis: is a whole number
import math


def crossover(devices, alpha, beta):
    levels = math.log2(devices)
    return alpha / beta * (devices - 1 - levels) / (levels - (devices - 1) / devices)
