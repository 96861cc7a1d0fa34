# diagnosis: to its share of the limit
def to_apply(gradient, limit):
    return tf.clip_by_norm(gradient, limit / mirrored.num_replicas_in_sync)
