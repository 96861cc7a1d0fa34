# diagnosis: the steps are four times too long
import tensorflow as tf

strategies = {
    "default": tf.distribute.get_strategy,
    "one device": lambda: tf.distribute.OneDeviceStrategy(tf.config.list_logical_devices()[-1].name),
    "central storage": tf.distribute.experimental.CentralStorageStrategy,
    "mirrored": tf.distribute.MirroredStrategy,
}


def train_on(name, inputs, targets, batch, rate):
    """The weights after one epoch, and the number of steps that the counter holds."""
    strategy = strategies[name]()
    with strategy.scope():
        layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
        layer.build((None, inputs.shape[1]))
        sgd = tf.keras.optimizers.SGD(rate)
        sgd.build(layer.trainable_variables)
    with strategy.scope():
        steps = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

    def on_replica(inputs, targets):
        with tf.GradientTape() as tape:
            errors = tf.square(layer(inputs)[:, 0] - targets)
            loss = tf.reduce_mean(errors)
        sgd.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        steps.assign_add(1)

    step = tf.function(lambda *share: strategy.run(on_replica, args=share))
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(batch, drop_remainder=True)
    for share in strategy.experimental_distribute_dataset(data):
        step(*share)
    return [weight.numpy() for weight in layer.weights], int(steps.numpy())


inputs = tf.random.stateless_normal([24, 2], seed=[1, 2]).numpy()
for name in ("one device", "mirrored"):
    (kernel, _), steps = train_on(name, inputs, inputs.sum(axis=1), batch=8, rate=0.1)
    print(f"{name:16}", kernel.ravel(), "steps:", steps)
