# diagnosis: divided by the size of a part
two = tf.distribute.MirroredStrategy()


def train_in_parts(inputs, targets, part, rate, updates):
    """The weights after some updates, each with all examples, `part` of them at a time."""
    with two.scope():
        layer = layers.Dense(1, kernel_initializer="zeros")
        layer.build((None, inputs.shape[1]))
        sgd = tf.keras.optimizers.SGD(rate)
        sgd.build(layer.trainable_variables)
        sums = [
            tf.Variable(
                tf.zeros(weight.shape),
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.SUM,
            )
            for weight in layer.trainable_variables
        ]
    whole = len(inputs)

    def accumulate(inputs, targets):
        with tf.GradientTape() as tape:
            errors = tf.square(layer(inputs)[:, 0] - targets)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=part)
        gradients = tape.gradient(loss, layer.trainable_variables)
        for total, gradient in zip(sums, gradients):
            total.assign_add(gradient)

    def update():
        sgd.apply([total.read_value() for total in sums], layer.trainable_variables)
        for total in sums:
            total.assign(tf.zeros_like(total))

    accumulate_part = tf.function(lambda batch: two.run(accumulate, args=batch))
    update_once = tf.function(lambda: two.run(update))
    parts = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(part)
    for _ in range(updates):
        for batch in two.experimental_distribute_dataset(parts):
            accumulate_part(batch)
        update_once()
    return [weight.numpy() for weight in layer.weights]


ten = np.random.default_rng(0).normal(size=(10, 2)).astype("float32")
kernel, _ = train_in_parts(ten, ten.sum(axis=1), 4, 0.1, updates=3)
print("weights:", kernel.ravel(), "(should be [0.6604 0.3989])")
