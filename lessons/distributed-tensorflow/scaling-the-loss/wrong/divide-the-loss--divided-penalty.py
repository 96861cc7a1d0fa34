# diagnosis: The penalty is divided by the batch size
def loss_of(per_example, penalty, global_batch):
    return (tf.reduce_sum(per_example) + penalty) / global_batch
