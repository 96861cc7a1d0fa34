# diagnosis: The sum is computed in float16
def agreed_gradient(gradient, scale):
    """On one replica: the sum over all replicas in float32 or zeros, and whether all were finite."""
    context = tf.distribute.get_replica_context()
    total = tf.cast(context.all_reduce("SUM", gradient), tf.float32) / scale
    finite = tf.reduce_all(tf.math.is_finite(total))
    return tf.where(finite, total, 0.0), finite


fine = tf.constant([[0.5, 1e-4], [1.5, 3e-4]], tf.float16)
loud = tf.constant([[0.5, 1e-4], [70_000.0, 1.0]], tf.float16)
for name, gradients in (("finite", fine), ("overflow", loud)):
    print(name, *[result.numpy() for result in tf.function(agree)(gradients, tf.constant(4096.0))])
