# diagnosis: divided by the number of examples
def weighted_part(losses, weights):
    """What one replica contributes to the weighted mean over all replicas."""
    count = tf.distribute.get_replica_context().all_reduce("SUM", tf.size(losses))
    return tf.nn.compute_average_loss(losses, sample_weight=weights, global_batch_size=count)


def weighted_parts(loss_shares, weight_shares):
    """The part of each replica, in order."""
    losses, weights = [
        place([tf.constant(share, tf.float32) for share in shares])
        for shares in (loss_shares, weight_shares)
    ]
    parts = tf.function(lambda: strategy.run(weighted_part, args=(losses, weights)))()
    return [part.numpy() for part in strategy.experimental_local_results(parts)]


parts = weighted_parts([[2.0, 3.0], [4.0]], [[1.0, 1.0], [2.0]])
print("parts:", parts, "sum:", sum(parts), "(should be 3.25)")
