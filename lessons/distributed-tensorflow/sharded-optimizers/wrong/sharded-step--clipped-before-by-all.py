# diagnosis: by the length of all of them together
def sharded_step(weights, m, v, gradient, number, limit):
    context = tf.distribute.get_replica_context()
    size = weights.shape[0]
    padding = [[0, REPLICAS * m.shape[0] - size]]
    length = tf.sqrt(context.all_reduce("SUM", tf.reduce_sum(gradient**2)))
    gradient = reduce_scatter(tf.pad(gradient * tf.minimum(1.0, limit / length), padding))
    piece, m, v = adam(own_piece(tf.pad(weights, padding)), m, v, gradient, number)
    return context.all_gather(piece, axis=0)[:size], m, v
