# diagnosis: There are two all-reduces
def block(x, a, a_bias, b, b_bias):
    hidden = tf.nn.gelu(all_reduce(mine(x, 1) @ mine(a, 0)) + a_bias)
    return all_reduce(mine(hidden, 1) @ mine(b, 0)) + b_bias
