# diagnosis: Scale p after the all-reduce
def low_rank(matrix, q):
    context = tf.distribute.get_replica_context()
    p = tf.linalg.matvec(matrix, q)
    p = context.all_reduce("MEAN", p / tf.norm(p))
    q = context.all_reduce("MEAN", tf.linalg.matvec(matrix, p, transpose_a=True))
    return p[:, tf.newaxis] * q, q
