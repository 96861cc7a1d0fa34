"""The calls of TensorFlow's tutorial on custom training, in its order: neither model nor optimizer is built first."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
images = rng.rand(64, 8, 8, 1).astype("float32")
labels = (images.mean(axis=(1, 2, 3)) > 0.5).astype("int64")
strategy = tf.distribute.MirroredStrategy()
BATCH, EPOCHS = 16, 2
tf.keras.utils.set_random_seed(1)

train = tf.data.Dataset.from_tensor_slices((images, labels)).batch(BATCH)
test = tf.data.Dataset.from_tensor_slices((images[:32], labels[:32])).batch(BATCH)
train_parts = strategy.experimental_distribute_dataset(train)
test_parts = strategy.experimental_distribute_dataset(test)


def create_model():
    regularizer = tf.keras.regularizers.L2(1e-5)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_regularizer=regularizer),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(8, activation="relu", kernel_regularizer=regularizer),
            tf.keras.layers.Dense(2, kernel_regularizer=regularizer),
        ]
    )


with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def compute_loss(labels, predictions, model_losses):
        loss = tf.nn.compute_average_loss(loss_object(labels, predictions))
        if model_losses:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
        return loss

    test_loss = tf.keras.metrics.Mean(name="test_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
    model = create_model()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)


def train_step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = compute_loss(labels, predictions, model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs):
    images, labels = inputs
    predictions = model(images, training=False)
    test_loss.update_state(loss_object(labels, predictions))
    test_accuracy.update_state(labels, predictions)


@tf.function
def distributed_train_step(inputs):
    losses = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


@tf.function
def distributed_test_step(inputs):
    return strategy.run(test_step, args=(inputs,))


for epoch in range(EPOCHS):
    total, batches = 0.0, 0
    for x in train_parts:
        total += distributed_train_step(x)
        batches += 1
    for x in test_parts:
        distributed_test_step(x)
    checkpoint.save("/tmp/training_checkpoints/ckpt")
    print(f"epoch {epoch + 1}: loss {total / batches:.3f}, test loss {test_loss.result():.3f}")
    for metric in (test_loss, train_accuracy, test_accuracy):
        metric.reset_state()

evaluated = create_model()
restored = tf.train.Checkpoint(optimizer=tf.keras.optimizers.Adam(learning_rate=0.01), model=evaluated)
restored.restore(tf.train.latest_checkpoint("/tmp/training_checkpoints"))
before = model(images[:4], training=False).numpy()
assert np.allclose(evaluated(images[:4], training=False).numpy(), before)

iterator = iter(train_parts)
for _ in range(2):
    distributed_train_step(next(iterator))


@tf.function
def distributed_train_epoch(dataset):
    total, batches = 0.0, 0
    for x in dataset:
        losses = strategy.run(train_step, args=(x,))
        total += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
        batches += 1
    return total / tf.cast(batches, dtype=tf.float32)


print(f"epoch 3: loss {distributed_train_epoch(train_parts):.3f}")
print("steps:", optimizer.iterations.numpy())
