# diagnosis: Every step has the first rate
def make_step(on_replica, spec):
    """A step that runs `on_replica` on all replicas, with the rate of the first call."""
    first = []

    @tf.function(input_signature=[spec])
    def step(batch):
        features, targets = batch
        strategy.run(on_replica, args=(features, targets, first[0]))

    def with_rate(batch, rate):
        first.append(rate)
        step(batch)

    return with_rate
