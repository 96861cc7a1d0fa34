# diagnosis: the buffer of the shuffle is too small
def pipeline(numbers, expensive, augment, size):
    """A data set of batches, made from the data set `numbers`."""
    return numbers.map(expensive).cache().shuffle(4).map(augment).batch(size)


def run_epochs(numbers, size, epochs):
    """The batches of each epoch, and how often `expensive` was called."""
    calls["expensive"] = 0
    source = tf.data.Dataset.from_tensor_slices(numbers)
    data = pipeline(
        source,
        counted("expensive"),
        lambda x: tf.cast(x, tf.float32) + tf.random.uniform(tf.shape(x), maxval=0.5),
        size,
    )
    return [[batch.numpy() for batch in data] for _ in range(epochs)], calls["expensive"]


batches, count = run_epochs(list(range(12)), 5, 2)
for epoch in batches:
    print(*[batch.round(1).tolist() for batch in epoch])
print("calls:", count, "(should be 12)")
