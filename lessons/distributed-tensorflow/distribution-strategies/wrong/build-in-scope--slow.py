# diagnosis: which is not less than half
def compiled_model():
    """A model that is ready for `fit`."""
    with strategy.scope():
        model = build_model()
        model.compile(
            optimizer=tf.keras.optimizers.SGD(0.001),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    return model


square = tf.random.uniform([1024, 2], -1, 1, seed=1).numpy()
train_everywhere(square, (square[:, 0] * square[:, 1] > 0).astype("int32"), epochs=6);
