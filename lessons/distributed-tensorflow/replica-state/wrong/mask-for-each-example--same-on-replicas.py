# diagnosis: All replicas draw the same mask
def drop(share, first, step, rate):
    kept = tf.random.stateless_uniform(tf.shape(share), seed=[step, 0]) >= rate
    return tf.where(kept, share / (1 - rate), 0.0)
