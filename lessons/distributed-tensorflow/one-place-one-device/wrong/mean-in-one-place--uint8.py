# diagnosis: convert the pixels before
def feature_means(pixels, batch):
    """The mean of each feature over all examples, and how many there were. pixels: (examples, features)"""
    with central.scope():
        total = tf.Variable(tf.zeros(pixels.shape[1:]), aggregation=tf.VariableAggregation.SUM)
        count = tf.Variable(0, aggregation=tf.VariableAggregation.SUM)

    def on_replica(share):
        total.assign_add(tf.cast(tf.reduce_sum(share, axis=0), tf.float32) * 1.0)
        count.assign_add(tf.shape(share)[0])

    step = tf.function(lambda share: central.run(on_replica, args=(share,)))
    data = tf.data.Dataset.from_tensor_slices(pixels).batch(batch)
    for share in central.experimental_distribute_dataset(data):
        step(share)
    return total.numpy() / count.numpy().astype("float32"), int(count.numpy())


pictures = tf.constant([[200, 0, 90]] * 5 + [[100, 60, 90]] * 5, tf.uint8).numpy()
print(*feature_means(pictures, batch=8), "should be [150. 30. 90.] 10")
