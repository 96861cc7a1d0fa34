# diagnosis: The state was kept in memory
kept = {}


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


def begin(folder, features, targets, rate, steps):
    """Train for some steps from the first weights, and save the state in `folder`; return the weights."""
    layer, sgd = build(features, rate)
    run_steps(layer, sgd, features, targets, steps)
    tf.train.Checkpoint(model=layer, optimizer=sgd).save(folder + "/state")
    kept[folder] = layer, sgd
    return [weight.numpy() for weight in layer.weights]


def go_on(folder, features, targets, rate, steps):
    """As the program does when it is started again: train for more steps from the state in `folder`."""
    layer, sgd = build(features, rate)
    layer, sgd = kept[folder]
    run_steps(layer, sgd, features, targets, steps)
    return [weight.numpy() for weight in layer.weights]


inputs = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
data = inputs, inputs.sum(axis=1), 0.05
print("without a break:", begin("whole", *data, 8)[0].ravel())
begin("half", *data, 4)
print("with a break:   ", go_on("half", *data, 4)[0].ravel())
