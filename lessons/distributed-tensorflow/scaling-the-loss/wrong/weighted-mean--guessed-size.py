# diagnosis: number of examples that it guesses
def weighted_part(losses, weights):
    return tf.nn.compute_average_loss(losses, sample_weight=weights)
