# diagnosis: the two have not agreed
two = tf.distribute.MirroredStrategy()


def agreed_gradient(gradient, scale):
    """On one replica: the sum over all replicas in float32 or zeros, and whether all were finite."""
    context = tf.distribute.get_replica_context()
    finite = tf.reduce_all(tf.math.is_finite(gradient))
    total = context.all_reduce("SUM", tf.cast(gradient, tf.float32) / scale)
    return tf.where(finite, total, 0.0), finite


def agree(gradients, scale):
    """gradients: an array for each replica. Returns a sum and a verdict from each."""
    shares = two.experimental_distribute_values_from_function(
        lambda context: tf.constant(gradients[context.replica_id_in_sync_group])
    )
    step = tf.function(lambda: two.run(agreed_gradient, args=(shares, tf.constant(scale, tf.float32))))
    sums, verdicts = map(two.experimental_local_results, step())
    return [total.numpy() for total in sums], [bool(verdict) for verdict in verdicts]


fine = [tf.constant([0.5, 1e-4], tf.float16).numpy(), tf.constant([1.5, 3e-4], tf.float16).numpy()]
loud = [fine[0], tf.constant([70_000.0, 1.0], tf.float16).numpy()]
for name, gradients in (("finite", fine), ("overflow", loud)):
    print(name, *agree(gradients, 4096.0))
