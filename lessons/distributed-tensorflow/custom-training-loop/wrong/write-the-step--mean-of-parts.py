# diagnosis: This is the mean of the parts
def train_one_epoch(features, labels, batch_size, rate):
    """The loss of each step of one epoch, and the weights after it."""
    with strategy.scope():
        layer = tf.keras.layers.Dense(3, kernel_initializer="zeros")
        layer.build((None, features.shape[1]))
        sgd = tf.keras.optimizers.SGD(rate)
        sgd.build(layer.trainable_variables)
        cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="none"
        )

    def on_replica(features, labels):
        with tf.GradientTape() as tape:
            per_example = cross_entropy(labels, layer(features))
            loss = tf.nn.compute_average_loss(per_example, global_batch_size=batch_size)
        gradients = tape.gradient(loss, layer.trainable_variables)
        sgd.apply(gradients, layer.trainable_variables)
        return loss

    @tf.function
    def step(batch):
        losses = strategy.run(on_replica, args=batch)
        return strategy.reduce("MEAN", losses, axis=None)

    data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch_size)
    losses = [step(batch) for batch in strategy.experimental_distribute_dataset(data)]
    return [float(loss) for loss in losses], [weight.numpy() for weight in layer.weights]


ten = np.random.default_rng(0).normal(size=(10, 2)).astype("float32")
losses, weights = train_one_epoch(ten, (ten[:, 0] > 0).astype("int32"), 4, 0.5)
print("losses:", [round(loss, 4) for loss in losses], "should begin with 1.0986")
print("weights changed:", bool(np.any(weights[0])))
