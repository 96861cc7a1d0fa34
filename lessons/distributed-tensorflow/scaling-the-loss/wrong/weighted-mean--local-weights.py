# diagnosis: Each replica divides by the sum of its own weights
def weighted_part(losses, weights):
    """What one replica contributes to the weighted mean over all replicas."""
    return tf.math.divide_no_nan(tf.reduce_sum(weights * losses), tf.reduce_sum(weights))


parts = tf.function(weighted_parts)(tf.constant([2.0, 3.0, 4.0]), tf.constant([1.0, 1.0, 2.0]), 2)
print("parts:", *[part.numpy() for part in parts], "sum:", sum(parts).numpy(), "(should be 3.25)")
