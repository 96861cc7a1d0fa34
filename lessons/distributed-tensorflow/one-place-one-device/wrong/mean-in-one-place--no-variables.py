# diagnosis: has to return two variables
import numpy as np


class Box:
    """A number in Python that looks like a variable."""

    def __init__(self, value):
        self.value = value

    def numpy(self):
        return self.value


def make_variables(features):
    return Box(np.zeros(features, "float32")), Box(np.int64(0))


def add_share(total, count, share):
    def add(part):
        total.value = total.value + part.sum(axis=0, dtype="float32")
        count.value = count.value + len(part)
        return np.int64(0)

    tf.numpy_function(add, [share], tf.int64)
