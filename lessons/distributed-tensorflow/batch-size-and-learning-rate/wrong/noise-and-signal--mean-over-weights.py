# diagnosis: Add up the variances of all weights
def noise_and_signal(gradients, batch):
    spread = gradients.var(axis=0, ddof=1)
    return batch * spread.mean(), (gradients.mean(axis=0) ** 2).sum() - spread.sum() / len(gradients)
