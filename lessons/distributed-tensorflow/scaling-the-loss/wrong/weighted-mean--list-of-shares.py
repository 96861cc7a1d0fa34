# diagnosis: does not come from the exchange
sums = []


def weighted_part(losses, weights):
    """The right part, with a sum of weights that the replicas leave in a list, and an idle all-reduce."""
    sums.append(tf.reduce_sum(weights))
    nothing = tf.distribute.get_replica_context().all_reduce("SUM", 0.0)
    return tf.reduce_sum(weights * losses) / (sums[-1] + sums[-2]) + nothing
