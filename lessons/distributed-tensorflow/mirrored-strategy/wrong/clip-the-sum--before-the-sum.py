# diagnosis: Each replica clips its own gradient
import numpy as np
import tensorflow as tf

mirrored = tf.distribute.MirroredStrategy()


def one_update(weights, gradients, limit):
    """The weights on each replica after one step. gradients: an array for each replica."""
    with mirrored.scope():
        w = tf.Variable(weights)
        sgd = tf.keras.optimizers.SGD(1.0)
        sgd.build([w])
    shares = mirrored.experimental_distribute_values_from_function(
        lambda context: tf.constant(gradients[context.replica_id_in_sync_group])
    )

    def on_replica(gradient):
        context = tf.distribute.get_replica_context()
        gradient = tf.clip_by_norm(gradient, limit)
        sgd.apply([gradient], [w])

    tf.function(lambda: mirrored.run(on_replica, args=(shares,)))()
    return [copy.numpy() for copy in mirrored.experimental_local_results(w)]


example = [np.float32([3.0, 4.0]) * factor for factor in (0.1, -0.3, 1.0, 0.2, 0.1, -0.1, 0.2, 0.3)]
copies = one_update(np.zeros(2, "float32"), example[: mirrored.num_replicas_in_sync], 0.5)
print("replica 0:", copies[0], "length of the step:", np.linalg.norm(copies[0]))
