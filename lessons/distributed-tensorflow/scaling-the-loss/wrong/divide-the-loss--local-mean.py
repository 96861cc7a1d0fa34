# diagnosis: Each replica divides by the size of its own share
def loss_of(per_example, penalty, global_batch):
    """The loss of one replica: from its own losses, a penalty and the global batch size."""
    return tf.reduce_mean(per_example) + tf.nn.scale_regularization_loss(penalty)


def one_step(weight, shares, rate, strength):
    """The weight after one step. shares: the examples of replica 0, of replica 1."""
    with strategy.scope():
        w = tf.Variable(float(weight))
        optimizer = tf.keras.optimizers.SGD(rate)
        optimizer.build([w])
    examples = place([tf.constant(share, tf.float32) for share in shares])
    global_batch = sum(len(share) for share in shares)

    def on_replica(share):
        with tf.GradientTape() as tape:
            loss = loss_of(tf.square(w * share - 1.0), strength * tf.square(w), global_batch)
        optimizer.apply([tape.gradient(loss, w)], [w])

    tf.function(lambda: strategy.run(on_replica, args=(examples,)))()
    return w.numpy()


print(f"equal shares:   {one_step(1.0, [[2.0, 3.0], [4.0, 5.0]], 0.01, 0.0):.4f}, should be 0.8000")
print(f"short batch:    {one_step(1.0, [[2.0, 3.0], [4.0]], 0.01, 0.0):.4f}, should be 0.8667")
print(f"with a penalty: {one_step(1.0, [[2.0, 3.0], [4.0, 5.0]], 0.01, 0.5):.4f}, should be 0.7900")
