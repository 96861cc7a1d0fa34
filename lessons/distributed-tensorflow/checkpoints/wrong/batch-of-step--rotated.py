# diagnosis: follow a pattern
def batch_of(step, count, size):
    """Another order in each epoch, without any shuffling."""
    epoch, start = divmod(step * size, count)
    return [(start + index + epoch + 1) % count for index in range(size)]
