# diagnosis: state it with tf.ensure_shape
def padded(values, batch):
    """A data set of pairs: values and weights, all of the same shape."""

    def pad(share):
        missing = batch - tf.shape(share)[0]
        weights = tf.pad(tf.ones_like(share), [[0, missing]])
        filled = tf.pad(share, [[0, missing]])
        return filled, weights

    return tf.data.Dataset.from_tensor_slices(values).batch(batch).map(pad)


def promised(values, batch):
    """The shapes that the data set promises: a list for each component, None for a size that is not known."""
    return [spec.shape.as_list() for spec in padded(values, batch).element_spec]


def mean_of(values, batch):
    """The mean of all values, and how many there were."""

    def on_replica(share, weights):
        return tf.reduce_sum(share * weights), tf.reduce_sum(weights)

    @tf.function
    def sums(batch):
        return [strategy.reduce("SUM", part, axis=None) for part in strategy.run(on_replica, args=batch)]

    parts = [sums(pair) for pair in strategy.experimental_distribute_dataset(padded(values, batch))]
    total, count = (float(sum(column)) for column in zip(*parts))
    return total / count, count


numbers = tf.range(1.0, 21.0).numpy()
print("promised:", promised(numbers, 2 * REPLICAS))
print("mean:    ", *mean_of(numbers, 2 * REPLICAS), "(should be 10.5 20.0)")
