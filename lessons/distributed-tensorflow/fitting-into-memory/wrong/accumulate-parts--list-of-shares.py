# diagnosis: more than the gradient of its own share
shares = []


def accumulate(inputs, targets, part, whole):
    """Remember the shares of all replicas in one list."""
    shares.append((inputs, targets))


def update():
    """Each replica applies half of the gradient of all examples."""
    inputs, targets = (tf.concat(parts, axis=0) for parts in zip(*shares))
    errors = tf.linalg.matvec(inputs, w) - targets
    sgd.apply([tf.linalg.matvec(inputs, errors, transpose_a=True) / inputs.shape[0]], [w])
    if tf.distribute.get_replica_context().replica_id_in_sync_group == 1:
        shares.clear()
