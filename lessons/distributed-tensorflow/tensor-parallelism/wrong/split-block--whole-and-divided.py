# diagnosis: computes the whole block and divides it
def block(x, a, a_bias, b, b_bias):
    hidden = tf.nn.gelu(x @ a + a_bias)
    return all_reduce(hidden @ b / DEVICES) + b_bias
