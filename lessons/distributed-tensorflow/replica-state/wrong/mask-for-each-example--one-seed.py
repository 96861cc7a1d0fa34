# diagnosis: Masks come back
def drop(share, first, step, rate):
    def mask(number):
        return tf.random.stateless_uniform(tf.shape(share)[1:], seed=[0, step + number]) >= rate

    numbers = first + tf.range(tf.shape(share)[0])
    kept = tf.map_fn(mask, numbers, fn_output_signature=tf.bool)
    return tf.where(kept, share / (1 - rate), 0.0)
