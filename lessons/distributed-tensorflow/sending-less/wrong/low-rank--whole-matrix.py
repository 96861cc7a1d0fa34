# diagnosis: nothing is saved
def low_rank(matrix, q):
    matrix = tf.distribute.get_replica_context().all_reduce("MEAN", matrix)
    p = tf.linalg.matvec(matrix, q)
    p = p / tf.norm(p)
    q = tf.linalg.matvec(matrix, p, transpose_a=True)
    return p[:, tf.newaxis] * q, q
