# diagnosis: Each replica clips its own gradient
def to_apply(gradient, limit):
    """On one replica: what it hands to the optimizer, which adds up over the replicas."""
    context = tf.distribute.get_replica_context()
    return tf.clip_by_norm(gradient, limit)
