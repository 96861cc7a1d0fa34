"""Model.fit with the old names in tf.distribute.experimental, on any machine: workers, servers or a TPU."""

import json
import os

import numpy as np
import tensorflow as tf

names = tf.distribute.experimental
cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
if tf.config.experimental.list_physical_devices("TPU"):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_host(resolver.master())
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = names.TPUStrategy(resolver)
elif "ps" in cluster:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    partitioner = names.partitioners.FixedShardsPartitioner(num_shards=1)
    strategy = names.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    names.coordinator.ClusterCoordinator(strategy)
else:
    strategy = names.MultiWorkerMirroredStrategy(communication=names.CollectiveCommunication.RING)


def dataset_fn(input_context):
    x = np.random.RandomState(0).rand(64, 4).astype("float32")
    d = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True)))
    options = tf.data.Options()
    options.experimental_deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return d.repeat().batch(16, drop_remainder=True).with_options(options)


class Learned(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("Epoch {}: loss {:.3f}".format(epoch + 1, logs["loss"]))


with strategy.scope():
    model = tf.keras.models.Sequential()
    model.add(tf.keras.layers.experimental.preprocessing.Rescaling(1.0, input_shape=(4,)))
    model.add(tf.keras.layers.Dense(1))
    model.compile(tf.keras.optimizers.SGD(lr=0.1), loss=tf.keras.losses.MeanSquaredError())
creator = tf.keras.utils.experimental.DatasetCreator(dataset_fn)
history = model.fit(creator, epochs=2, steps_per_epoch=2, callbacks=[Learned()], verbose=0)
assert history.history["loss"][-1] < history.history["loss"][0]
print("learned with", type(strategy).__name__)
