# diagnosis: which a device does not have
def sharded_step(weights, m, v, gradient, number, limit):
    context = tf.distribute.get_replica_context()
    size = weights.shape[0]
    padding = [[0, REPLICAS * m.shape[0] - size]]
    total = context.all_reduce("SUM", tf.pad(gradient, padding))
    gradient = own_piece(total) * tf.minimum(1.0, limit / tf.norm(total))
    piece, m, v = adam(own_piece(tf.pad(weights, padding)), m, v, gradient, number)
    return context.all_gather(piece, axis=0)[:size], m, v
