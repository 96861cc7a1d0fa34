# diagnosis: One example has more
def noise_and_signal(gradients, batch):
    return gradients.var(axis=0, ddof=1).sum(), (gradients.mean(axis=0) ** 2).sum()
