# diagnosis: on one device
def compiled_model():
    """A model that is ready for `fit`."""
    with strategy.scope():
        model = build_model()
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)
    model.compile(
        optimizer=optimizer,
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


square = tf.random.uniform([1024, 2], -1, 1, seed=1).numpy()
train_everywhere(square, (square[:, 0] * square[:, 1] > 0).astype("int32"), epochs=6);
