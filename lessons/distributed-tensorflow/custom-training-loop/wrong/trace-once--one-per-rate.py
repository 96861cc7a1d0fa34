# diagnosis: again for every new rate
def make_step(on_replica, spec):
    """A step that runs `on_replica` on all replicas, with a graph for each rate."""
    steps = {}

    def with_rate(batch, rate):
        def step(batch):
            features, targets = batch
            strategy.run(on_replica, args=(features, targets, rate))

        if rate not in steps:
            steps[rate] = tf.function(step, input_signature=[spec])
        steps[rate](batch)

    return with_rate
