# diagnosis: lacks how far the means of the shares lie apart
def moments_of_all(share):
    context = tf.distribute.get_replica_context()
    count = tf.cast(tf.shape(share)[0], tf.float32)
    own_mean = tf.reduce_sum(share, axis=0) / tf.maximum(count, 1.0)
    sums = [count, tf.reduce_sum(share, axis=0), tf.reduce_sum((share - own_mean) ** 2, axis=0)]
    count, total, squares = context.all_reduce("SUM", sums)
    return total / count, squares / count
