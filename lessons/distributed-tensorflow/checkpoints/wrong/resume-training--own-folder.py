# diagnosis: Only the chief goes on.
import tempfile

import tensorflow as tf

import lockstep

workers = tf.distribute.MultiWorkerMirroredStrategy()
chief = workers.cluster_resolver.task_id in (0, None)


def train(folder, inputs, targets, batch, rate, every):
    """The weights after all steps. Continues from the latest checkpoint in `folder`, if there is one."""
    with workers.scope():
        layer = tf.keras.layers.Dense(1, kernel_initializer="zeros")
        layer.build((None, inputs.shape[1]))
        sgd = tf.keras.optimizers.SGD(rate, momentum=0.9)
        sgd.build(layer.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
    checkpoint = tf.train.Checkpoint(layer=layer, sgd=sgd, step=step)
    own = folder if chief else tempfile.mkdtemp()
    manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)

    @tf.function
    def train_step(share):
        def on_replica(inputs, targets):
            with tf.GradientTape() as tape:
                errors = tf.square(layer(inputs)[:, 0] - targets)
                loss = tf.nn.compute_average_loss(errors, global_batch_size=batch)
            gradients = tape.gradient(loss, layer.trainable_variables)
            sgd.apply(gradients, layer.trainable_variables)
            return loss

        return workers.reduce("SUM", workers.run(on_replica, args=share), axis=None)

    done = int(step.numpy())
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(batch, drop_remainder=True)
    data = data.skip(done)
    for share in workers.experimental_distribute_dataset(data):
        loss = float(train_step(share))
        done += 1
        step.assign(done)
        lockstep.log(done, loss=loss)
        if done % every == 0:
            manager.save()
    return [weight.numpy() for weight in layer.weights]


inputs = tf.random.stateless_normal([12, 2], seed=[1, 2]).numpy()
folder = f"mine-{inputs.sum():.4f}"
whole = train(folder, inputs, inputs.sum(axis=1), batch=4, rate=0.05, every=3)
again = train(folder, inputs * 0, inputs.sum(axis=1), batch=4, rate=0.05, every=3)
print("at first:", whole[0].ravel(), "  started again:", again[0].ravel(), "(should be the same)")
