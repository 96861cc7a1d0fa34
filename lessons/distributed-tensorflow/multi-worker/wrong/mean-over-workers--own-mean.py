# diagnosis: the worker's own values
def mean_of_all(values):
    """The mean of the values of all workers. values: what this worker has read."""
    mine = tf.constant(values, tf.float32)

    @tf.function
    def compute():
        def on_replica():
            context = tf.distribute.get_replica_context()
            return tf.reduce_mean(mine)

        return strategy.run(on_replica)

    return strategy.experimental_local_results(compute())[0].numpy()


read = [[1.0, 2.0, 3.0, 4.0, 5.0], [10.0], [6.0]]
print("mean:", mean_of_all(read[resolver.task_id]))
