# diagnosis: Keep the values as they are
import numpy as np


def fill_up(share, batch):
    """A batch of zeros, but for two numbers that Python has computed."""

    def computed(values):
        total, count = np.zeros(batch, "float32"), np.zeros(batch, "float32")
        total[0], count[0] = values.sum(), len(values)
        return total, count

    total, count = tf.numpy_function(computed, [share], [tf.float32, tf.float32])
    return tf.ensure_shape(total, [batch]), tf.ensure_shape(count, [batch])


def sums_of(values, weights):
    """The sums of what was computed before."""
    return tf.reduce_sum(values), tf.reduce_sum(weights)
