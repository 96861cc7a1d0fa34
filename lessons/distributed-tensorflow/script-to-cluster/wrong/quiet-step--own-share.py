# diagnosis: divides by the size of its own share
def on_replica(features, labels, weights, global_batch):
    """Take a step with this replica's share of a batch, and add up its numbers in `totals`."""
    context = tf.distribute.get_replica_context()
    with tf.GradientTape() as tape:
        logits = classifier(features)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        total = tf.reduce_sum(weights * each)
        loss = tf.reduce_mean(weights * each)
    gradients = tape.gradient(loss, classifier.trainable_variables)
    sgd.apply(gradients, classifier.trainable_variables)
    right = tf.cast(tf.argmax(logits, axis=1, output_type=tf.int32) == labels, tf.float32)
    totals.assign_add(tf.stack([total, tf.reduce_sum(weights * right), tf.reduce_sum(weights)]))
