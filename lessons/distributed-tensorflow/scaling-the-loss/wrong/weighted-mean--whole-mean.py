# diagnosis: Each replica returns the whole weighted mean
def weighted_part(losses, weights):
    """What one replica contributes to the weighted mean over all replicas."""
    context = tf.distribute.get_replica_context()
    product, total = context.all_reduce("SUM", [tf.reduce_sum(weights * losses), tf.reduce_sum(weights)])
    return product / total


parts = tf.function(weighted_parts)(tf.constant([2.0, 3.0, 4.0]), tf.constant([1.0, 1.0, 2.0]), 2)
print("parts:", *[part.numpy() for part in parts], "sum:", sum(parts).numpy(), "(should be 3.25)")
