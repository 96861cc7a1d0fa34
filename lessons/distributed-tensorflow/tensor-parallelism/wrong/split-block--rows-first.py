# diagnosis: The activation gets partial sums here. Cut
def block(x, a, a_bias, b, b_bias):
    hidden = tf.nn.gelu(mine(x, 1) @ mine(a, 0) + a_bias)
    return all_reduce(hidden @ b) + b_bias
