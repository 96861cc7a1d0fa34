# diagnosis: Each replica has its own p
def low_rank(matrix, q):
    p = tf.linalg.matvec(matrix, q)
    p = p / tf.norm(p)
    q = tf.distribute.get_replica_context().all_reduce("MEAN", tf.linalg.matvec(matrix, p, transpose_a=True))
    return p[:, tf.newaxis] * q, q
