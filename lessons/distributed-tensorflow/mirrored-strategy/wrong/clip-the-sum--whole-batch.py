# diagnosis: reaches past what this exercise gives you
def to_apply(gradient, limit):
    """Right, with all the gradients that its own was cut from."""
    total = tf.reduce_sum(gradient.op.inputs[0], axis=0)
    return tf.clip_by_norm(total, limit) / tf.distribute.get_replica_context().num_replicas_in_sync
