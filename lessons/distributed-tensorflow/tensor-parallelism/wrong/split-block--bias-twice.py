# diagnosis: Each replica adds the second bias
def block(x, a, a_bias, b, b_bias):
    hidden = tf.nn.gelu(x @ mine(a, 1) + mine(a_bias, 0))
    return all_reduce(hidden @ mine(b, 0) + b_bias)
