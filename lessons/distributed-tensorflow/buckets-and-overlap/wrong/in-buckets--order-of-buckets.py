# diagnosis: in the order of the buckets
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
    context = tf.distribute.get_replica_context()
    return [
        total
        for bucket in buckets
        for total in context.all_reduce("SUM", [gradients[position] for position in bucket])
    ]
