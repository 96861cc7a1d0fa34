# diagnosis: The result is not the expected one
import numpy as np


def make_variables(features):
    """Variables that stay at 0, and say what lists in Python hold."""
    made = tf.Variable(tf.zeros(features)), tf.Variable(0)
    for variable, first in zip(made, (np.zeros(features, "float32"), np.int64(0))):
        variable.parts = [first]
        variable.numpy = lambda parts=variable.parts: np.sum(parts, axis=0)
    return made


def add_share(total, count, share):
    def add(part):
        total.parts.append(part.sum(axis=0, dtype="float32"))
        count.parts.append(np.int64(len(part)))
        return np.int64(0)

    tf.numpy_function(add, [share], tf.int64)
