# diagnosis: less noise than one replica has
def noise_and_signal(gradients, batch):
    spread = gradients.var(axis=0, ddof=1).sum()
    return batch * spread, (gradients.mean(axis=0) ** 2).sum() - spread
