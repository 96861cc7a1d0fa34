# diagnosis: Whole batches are shuffled
def pipeline(numbers, expensive, augment, size):
    """Calls for batches are welcome; a cache that keeps these batches is not."""
    return numbers.batch(size).map(expensive).cache().shuffle(10_000).map(augment)
