# diagnosis: the mean of the replicas' means
def moments_of_all(share):
    context = tf.distribute.get_replica_context()
    mean = context.all_reduce("MEAN", tf.reduce_mean(share, axis=0))
    return mean, context.all_reduce("MEAN", tf.reduce_mean((share - mean) ** 2, axis=0))
