# diagnosis: used for judging
@tf.function
def weighted_parts(losses, weights, cut):
    """The right parts, from one device, and an idle all-reduce."""
    nothing = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", 0.0))
    total = tf.reduce_sum(weights) + strategy.experimental_local_results(nothing)[0]
    products = losses * weights
    return [tf.reduce_sum(products[:cut]) / total, tf.reduce_sum(products[cut:]) / total]
