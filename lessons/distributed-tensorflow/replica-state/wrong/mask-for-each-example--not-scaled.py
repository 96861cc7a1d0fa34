# diagnosis: not divided by 1 - rate
def drop(share, first, step, rate):
    def mask(number):
        return tf.random.stateless_uniform(tf.shape(share)[1:], seed=[step, number]) >= rate

    numbers = first + tf.range(tf.shape(share)[0])
    kept = tf.map_fn(mask, numbers, fn_output_signature=tf.bool)
    return tf.where(kept, share, 0.0)
