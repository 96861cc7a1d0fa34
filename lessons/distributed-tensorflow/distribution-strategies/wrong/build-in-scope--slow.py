# diagnosis: which is not less than half
def train_everywhere(points, labels, epochs):
    """The trained weights, and the devices that the first one lives on."""
    with strategy.scope():
        model = build_model()
        model.compile(
            optimizer=tf.keras.optimizers.SGD(0.001),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    history = model.fit(points, labels, batch_size=64, epochs=epochs, verbose=0)
    copies = strategy.experimental_local_results(model.weights[0].value)
    print(f"{len(copies)} device(s), loss", *[f"{loss:.3f}" for loss in history.history["loss"]])
    return [weight.numpy() for weight in model.weights], [copy.device[-5:] for copy in copies]


square = tf.random.uniform([1024, 2], -1, 1, seed=1).numpy()
train_everywhere(square, (square[:, 0] * square[:, 1] > 0).astype("int32"), epochs=6);
