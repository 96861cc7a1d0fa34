# diagnosis: forgotten its momentum
import tempfile

import tensorflow as tf

import lockstep
from cluster import me, strategy


def share_of(batch):
    """What each replica gets of a batch."""

    def of_replica(context):
        return tf.constant(batch[context.replica_id_in_sync_group :: context.num_replicas_in_sync])

    return strategy.experimental_distribute_values_from_function(of_replica)


def train(folder, inputs, targets, rate, every):
    """The weights after all epochs, and the loss of the last. Continues from a checkpoint in `folder`, if there is one."""
    epochs, steps, batch, width = inputs.shape
    with strategy.scope():
        layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
        layer.build((None, width))
        sgd = tf.keras.optimizers.SGD(rate, momentum=0.9)
        sgd.build(layer.trainable_variables)
        total = tf.Variable(
            0.0,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    @tf.function
    def train_step(inputs, targets):
        def on_replica(inputs, targets):
            with tf.GradientTape() as tape:
                squares = tf.reduce_sum((layer(inputs)[:, 0] - targets) ** 2)
                loss = squares / batch
            sgd.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
            total.assign_add(squares)

        strategy.run(on_replica, args=(inputs, targets))

    done = tf.Variable(0, trainable=False)
    checkpoint = tf.train.Checkpoint(layer=layer, total=total, done=done)
    manager = tf.train.CheckpointManager(checkpoint, folder if me == 0 else tempfile.mkdtemp(), max_to_keep=2)
    checkpoint.restore(tf.train.latest_checkpoint(folder))
    begin = int(done)
    for number in range(begin, epochs * steps):
        epoch, step = divmod(number, steps)
        if step == 0:
            total.assign(0.0)
        train_step(share_of(inputs[epoch, step]), share_of(targets[epoch, step]))
        lockstep.log(number + 1, epoch=epoch)
        if (number + 1) % every == 0:
            done.assign(number + 1)
            manager.save()
    loss = total.read_value().numpy() / (steps * batch)
    return [*[weight.numpy() for weight in layer.weights], loss]
