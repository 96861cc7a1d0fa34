# diagnosis: in one all-reduce
def fill(sizes, limit):
    buckets, filled = [], 0
    for position in reversed(range(len(sizes))):
        if not buckets or filled + sizes[position] > limit:
            buckets.append([])
            filled = 0
        buckets[-1].append(position)
        filled += sizes[position]
    return buckets


def add_up(gradients, buckets):
    return tf.distribute.get_replica_context().all_reduce("SUM", gradients)
