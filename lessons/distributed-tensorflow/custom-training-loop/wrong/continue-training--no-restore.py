# diagnosis: begins from the first weights again
import tempfile


def build(features, rate):
    with strategy.scope():
        layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
        layer.build((None, features.shape[1]))
        sgd = tf.keras.optimizers.SGD(rate, momentum=0.9)
        sgd.build(layer.trainable_variables)
    return layer, sgd


def run_steps(layer, sgd, features, targets, steps):
    def on_replica(features, targets):
        with tf.GradientTape() as tape:
            errors = tf.square(layer(features)[:, 0] - targets)
            loss = tf.nn.compute_average_loss(errors, global_batch_size=len(all_targets))
        sgd.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)

    all_targets = targets
    data = tf.data.Dataset.from_tensor_slices((features, targets)).batch(len(targets)).repeat(steps)
    step = tf.function(lambda batch: strategy.run(on_replica, args=batch))
    for batch in strategy.experimental_distribute_dataset(data):
        step(batch)


def train_in_two(features, targets, rate, steps, cut):
    """The weights after `steps` steps, with a new beginning after step `cut`."""
    folder = tempfile.mkdtemp()
    layer, sgd = build(features, rate)
    run_steps(layer, sgd, features, targets, cut)
    path = tf.train.Checkpoint(model=layer, optimizer=sgd).save(folder + "/state")

    layer, sgd = build(features, rate)  # the program begins again
    tf.train.Checkpoint(model=layer, optimizer=sgd)
    run_steps(layer, sgd, features, targets, steps - cut)
    return [weight.numpy() for weight in layer.weights]


inputs = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
print("without a break:", train_in_two(inputs, inputs.sum(axis=1), 0.05, 6, 0)[0].ravel())
print("with a break:   ", train_in_two(inputs, inputs.sum(axis=1), 0.05, 6, 3)[0].ravel())
