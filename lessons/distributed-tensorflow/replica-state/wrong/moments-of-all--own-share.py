# diagnosis: returns the mean of its own share
def moments_of_all(share):
    return tf.reduce_mean(share, axis=0), tf.math.reduce_variance(share, axis=0)
