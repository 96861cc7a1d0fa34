# diagnosis: gets other masks than in one piece
def drop(share, first, step, rate):
    kept = tf.random.stateless_uniform(tf.shape(share), seed=[step, first]) >= rate
    return tf.where(kept, share / (1 - rate), 0.0)
