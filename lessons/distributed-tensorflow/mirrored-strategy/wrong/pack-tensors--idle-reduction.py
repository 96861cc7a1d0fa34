# diagnosis: it changes nothing
rows = []


def add_up(tensors):
    """The right sums of what all replicas have put into a list, and a reduction that only waits for them."""
    rows.append(tensors)
    zero = tf.distribute.get_replica_context().all_reduce("SUM", tf.zeros([]))
    everyone = rows[-mirrored.num_replicas_in_sync :]
    return [sum(tensor for tensor in same) + zero for same in zip(*everyone)]
