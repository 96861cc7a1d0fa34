# diagnosis: has to describe its steps
def pipeline(numbers, expensive, augment, size):
    """A cache of results that a Python list holds already."""
    prepared = tf.data.Dataset.from_tensor_slices([expensive(number) for number in numbers])
    return prepared.cache().shuffle(10_000).map(augment).batch(size)
