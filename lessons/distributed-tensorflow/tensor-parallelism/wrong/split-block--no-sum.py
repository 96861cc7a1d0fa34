# diagnosis: nothing was added up
def block(x, a, a_bias, b, b_bias):
    hidden = tf.nn.gelu(x @ mine(a, 1) + mine(a_bias, 0))
    return hidden @ mine(b, 0) + b_bias
