# diagnosis: The verdict does not come from the exchange
flags = []


def agreed_gradient(gradient, scale):
    """Right, with verdicts that the replicas leave in a list. Only the sum is exchanged."""
    flags.append(tf.reduce_all(tf.math.is_finite(gradient)))
    total = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(gradient, tf.float32) / scale)
    finite = tf.logical_and(*flags[-2:])
    return tf.where(finite, total, 0.0), finite
