# diagnosis: for every new rate and for the short batch
def make_step(on_replica, spec):
    """A step that runs `on_replica` on all replicas, for batches as in `spec` and a rate."""

    @tf.function(reduce_retracing=True)
    def step(batch, rate):
        features, targets = batch
        strategy.run(on_replica, args=(features, targets, rate))

    return step
