# diagnosis: not with the number of replicas
def plan(examples, replicas, batch_per_replica, base_batch, base_rate):
    """The global batch, the steps per epoch and the learning rate."""
    global_batch = batch_per_replica * replicas
    return global_batch, examples // global_batch, base_rate * replicas


print(plan(2048, replicas=4, batch_per_replica=16, base_batch=16, base_rate=0.1), "should be (64, 32, 0.4)")
print(plan(1000, replicas=8, batch_per_replica=32, base_batch=64, base_rate=0.1), "should be (256, 4, 0.4)")
