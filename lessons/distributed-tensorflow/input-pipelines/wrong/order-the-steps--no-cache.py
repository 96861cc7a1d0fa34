# diagnosis: no cache
kept = []


def pipeline(numbers, expensive, augment, size):
    """Results that a Python list holds once the first epoch has asked for them."""
    expensive_numbers = numbers.map(expensive)

    def prepared():
        if not kept:
            kept.extend(expensive_numbers.as_numpy_iterator())
        yield from kept

    kept.clear()
    data = tf.data.Dataset.from_generator(prepared, output_signature=numbers.element_spec)
    return data.shuffle(10_000).map(augment).batch(size)
