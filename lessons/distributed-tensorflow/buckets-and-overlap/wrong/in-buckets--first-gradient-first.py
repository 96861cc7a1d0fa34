# diagnosis: it is ready first
def fill(sizes, limit):
    buckets, filled = [], 0
    for position in range(len(sizes)):
        if not buckets or filled + sizes[position] > limit:
            buckets.append([])
            filled = 0
        buckets[-1].append(position)
        filled += sizes[position]
    return buckets


def add_up(gradients, buckets):
    context = tf.distribute.get_replica_context()
    total = [None] * len(gradients)
    for bucket in buckets:
        results = context.all_reduce("SUM", [gradients[position] for position in bucket])
        for position, result in zip(bucket, results):
            total[position] = result
    return total
