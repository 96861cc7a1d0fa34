# diagnosis: the mean of the means
import numpy as np


def whole_gradient(reports):
    return np.mean([mean for mean, count in reports if count], axis=0)
