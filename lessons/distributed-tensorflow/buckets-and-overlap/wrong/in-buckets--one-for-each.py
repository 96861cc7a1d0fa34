# diagnosis: an all-reduce for each gradient
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
    return [context.all_reduce("SUM", gradient) for gradient in gradients]
