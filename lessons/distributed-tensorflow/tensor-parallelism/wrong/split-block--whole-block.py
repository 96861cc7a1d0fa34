# diagnosis: Nothing is exchanged
def block(x, a, a_bias, b, b_bias):
    return tf.nn.gelu(x @ a + a_bias) @ b + b_bias
