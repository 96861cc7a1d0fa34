# diagnosis: There is an all-reduce for each tensor
def add_up(tensors):
    """On one replica: each of the tensors, added up over all replicas."""
    context = tf.distribute.get_replica_context()
    return [context.all_reduce("SUM", tensor) for tensor in tensors]


replicas = mirrored.num_replicas_in_sync
arguments = tf.ones([replicas, 2, 3]), tf.ones([replicas, 2]), tf.ones([replicas])
graph = tf.function(sums_of_rows).get_concrete_function(*arguments)
print(*[total.numpy().tolist() for total in graph(*arguments)], f"(should all be {replicas}.0)")
print(reductions(graph), "reduction(s)")
