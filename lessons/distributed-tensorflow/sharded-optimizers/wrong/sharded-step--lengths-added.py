# diagnosis: The lengths of the pieces are added up
def sharded_step(weights, m, v, gradient, number, limit):
    context = tf.distribute.get_replica_context()
    size = weights.shape[0]
    padding = [[0, REPLICAS * m.shape[0] - size]]
    gradient = reduce_scatter(tf.pad(gradient, padding))
    length = tf.norm(context.all_reduce("SUM", tf.norm(gradient)))
    gradient *= tf.minimum(1.0, limit / length)
    piece, m, v = adam(own_piece(tf.pad(weights, padding)), m, v, gradient, number)
    return context.all_gather(piece, axis=0)[:size], m, v
