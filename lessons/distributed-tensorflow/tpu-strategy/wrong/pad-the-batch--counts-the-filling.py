# diagnosis: What was filled in is counted
def fill_up(share, batch):
    """Values and weights, `batch` of each. share: at most `batch` values"""
    missing = batch - tf.shape(share)[0]
    weights = tf.pad(tf.ones_like(share), [[0, missing]])
    values = tf.pad(share, [[0, missing]])
    return tf.ensure_shape(values, [batch]), tf.ensure_shape(weights, [batch])


def sums_of(values, weights):
    """The sum of one replica's values, and how many there are."""
    return tf.reduce_sum(values * weights), tf.cast(tf.size(values), tf.float32)


numbers = tf.range(1.0, 21.0).numpy()
print("promised:", promised(numbers, 2 * REPLICAS))
print("mean:    ", *mean_of(numbers, 2 * REPLICAS), "(should be 10.5 20.0)")
