# diagnosis: the variance has lost its digits
def moments_of_all(share):
    context = tf.distribute.get_replica_context()
    count = tf.cast(tf.shape(share)[0], tf.float32)
    sums = [count, tf.reduce_sum(share, axis=0), tf.reduce_sum(share**2, axis=0)]
    count, total, squares = context.all_reduce("SUM", sums)
    mean = total / count
    return mean, squares / count - mean**2
