"""Model.fit under strategies of tf.distribute.experimental, mixed precision, a stateful network."""

import numpy as np
import tensorflow as tf

tf.keras.backend.clear_session()
strategy = tf.distribute.experimental.CentralStorageStrategy()
x = np.random.RandomState(0).rand(64, 4).astype("float32")
y = x.sum(axis=1, keepdims=True)
with strategy.scope():
    model = tf.keras.models.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(lr=0.1), metrics=["mae"])
history = model.fit(x, y, epochs=3, batch_size=16, verbose=2)
assert history.history["loss"][-1] < history.history["loss"][0]
assert abs(float(tf.keras.backend.get_value(model.optimizer.lr)) - 0.1) < 1e-6
model.save_weights("/tmp/weights/w", save_format="tf")
model.save("/tmp/model.h5")
assert tf.keras.models.load_model("/tmp/model.h5").predict(x[:2]).shape == (2, 1)

policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16")
tf.keras.mixed_precision.experimental.set_policy(policy)
assert tf.keras.mixed_precision.experimental.global_policy().compute_dtype == "float16"
scaled = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
    tf.keras.optimizers.legacy.SGD(0.1), loss_scale="dynamic"
)
assert float(scaled.get_scaled_loss(tf.constant(1.0))) == 2.0**15
try:
    tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=128)
except ValueError as e:
    assert "LossScaleOptimizer(optimizer, dynamic=False" in str(e)
else:
    raise AssertionError("a fixed loss scale was forgotten")
tf.keras.mixed_precision.experimental.set_policy("float32")

lstm = tf.keras.Sequential([tf.keras.layers.LSTM(3, stateful=True, batch_input_shape=(2, 5, 1))])
first = lstm.predict(np.ones((2, 5, 1)))
second = lstm.predict(np.ones((2, 5, 1)))
lstm.reset_states()
assert not np.allclose(first, second)
assert np.allclose(first, lstm.predict(np.ones((2, 5, 1))))
names = tf.distribute.experimental
assert names.MultiWorkerMirroredStrategy and names.ParameterServerStrategy and names.TPUStrategy
assert names.CollectiveCommunication.RING and names.coordinator.ClusterCoordinator and names.partitioners
assert tf.keras.callbacks.experimental.BackupAndRestore and tf.keras.experimental.CosineDecay
print("done with", tf.keras.__version__ if hasattr(tf.keras, "__version__") else "tf_keras")
