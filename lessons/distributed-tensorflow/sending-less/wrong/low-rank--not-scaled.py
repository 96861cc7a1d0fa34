# diagnosis: p has to have length 1
def low_rank(matrix, q):
    context = tf.distribute.get_replica_context()
    p = context.all_reduce("MEAN", tf.linalg.matvec(matrix, q))
    q = context.all_reduce("MEAN", tf.linalg.matvec(matrix, p, transpose_a=True))
    return p[:, tf.newaxis] * q, q
