# diagnosis: does not use `global_batch`
def loss_of(per_example, penalty, global_batch):
    return tf.nn.compute_average_loss(per_example) + tf.nn.scale_regularization_loss(penalty)
