# diagnosis: divided by the number of examples
def weighted_part(losses, weights):
    """What one replica contributes to the weighted mean over all replicas."""
    count = tf.distribute.get_replica_context().all_reduce("SUM", tf.size(losses))
    return tf.nn.compute_average_loss(losses, sample_weight=weights, global_batch_size=count)


parts = tf.function(weighted_parts)(tf.constant([2.0, 3.0, 4.0]), tf.constant([1.0, 1.0, 2.0]), 2)
print("parts:", *[part.numpy() for part in parts], "sum:", sum(parts).numpy(), "(should be 3.25)")
