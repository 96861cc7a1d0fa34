# diagnosis: compiled again for every new rate
def descend(start, rates):
    """The weight after a step with each of the rates, and how often the step was traced."""
    with strategy.scope():
        weight = tf.Variable(float(start))

    @tf.function
    def step(rate):
        def on_replica():
            gradient = weight.read_value() / REPLICAS  # each replica brings its part
            total = tf.distribute.get_replica_context().all_reduce("SUM", gradient)
            weight.assign(weight.read_value() - rate * total)

        strategy.run(on_replica)

    for rate in rates:
        step(float(rate))
    return weight.numpy(), step.experimental_get_tracing_count()


print(*descend(1.0, [0.5, 0.25, 0.125]), "should be 0.328125 1")
