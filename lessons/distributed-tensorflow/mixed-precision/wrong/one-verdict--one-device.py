# diagnosis: used for judging
def agree(gradients, scale):
    """The right sums and verdicts from one device, and an all-reduce that changes nothing."""
    nothing = two.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", 0.0))
    finite = tf.reduce_all(tf.math.is_finite(gradients))
    total = tf.where(finite, tf.reduce_sum(tf.cast(gradients, tf.float32) / scale, axis=0), 0.0)
    total += two.experimental_local_results(nothing)[0]
    return total, total, finite, finite
