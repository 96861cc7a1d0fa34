"""A custom loop as in the guide for TensorFlow 2.6: a loss without reduction, and metrics that are reset."""

import numpy as np
import tensorflow as tf

gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
strategy = tf.distribute.MirroredStrategy()
print("Number of devices: {}".format(strategy.num_replicas_in_sync))
BATCH = 8 * strategy.num_replicas_in_sync
images = np.random.RandomState(0).rand(64, 28, 28, 1).astype(np.float32)
labels = (images.mean(axis=(1, 2, 3)) > 0.5).astype(np.int64)


def dataset_fn(context):
    batch = context.get_per_replica_batch_size(BATCH)
    d = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(64).repeat(2)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return d.with_options(options).shard(context.num_input_pipelines, context.input_pipeline_id).batch(batch)


dist = strategy.experimental_distribute_datasets_from_function(dataset_fn)
with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction=tf.keras.losses.Reduction.NONE
    )

    def compute_loss(labels, predictions):
        return tf.nn.compute_average_loss(loss_object(labels, predictions), global_batch_size=BATCH)

    test_loss = tf.keras.metrics.Mean(name="test_loss")
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    model = tf.keras.Sequential(
        [
            tf.keras.layers.experimental.preprocessing.Rescaling(2.0, offset=-1.0),
            tf.keras.layers.Conv2D(4, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(lr=0.01, decay=0.5)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)


def train_step(inputs):
    x, y = inputs
    with tf.GradientTape() as tape:
        predictions = model(x, training=True)
        loss = compute_loss(y, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    accuracy.update_state(y, predictions)
    return loss


@tf.function
def distributed_train_step(inputs):
    per_replica = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)


for epoch in range(2):
    total, n = 0.0, 0
    for x in dist:
        total += distributed_train_step(x)
        n += 1
    print("Epoch {}, Loss: {:.3f}, Accuracy: {:.1f}".format(epoch + 1, total / n, accuracy.result() * 100))
    test_loss.reset_states()
    accuracy.reset_states()
    assert float(accuracy.result()) == 0.0
checkpoint.save("/tmp/ckpt/ckpt")
assert tf.train.latest_checkpoint("/tmp/ckpt")
steps = int(optimizer.iterations.numpy())
assert steps == 2 * n == 2 * 128 // BATCH, (steps, n)
assert abs(float(optimizer.lr.numpy()) - 0.01 / (1 + 0.5 * (steps - 1))) < 1e-7, optimizer.lr
