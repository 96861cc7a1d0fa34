# diagnosis: Nothing is exchanged
def low_rank(matrix, q):
    p = tf.linalg.matvec(matrix, q)
    p = p / tf.norm(p)
    q = tf.linalg.matvec(matrix, p, transpose_a=True)
    return p[:, tf.newaxis] * q, q
