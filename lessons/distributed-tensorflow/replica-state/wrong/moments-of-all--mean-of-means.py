# diagnosis: the mean of the replicas' means
def moments_of_all(share):
    context = tf.distribute.get_replica_context()
    own = [tf.reduce_mean(share, axis=0), tf.math.reduce_variance(share, axis=0)]
    return tuple(context.all_reduce("MEAN", own))
