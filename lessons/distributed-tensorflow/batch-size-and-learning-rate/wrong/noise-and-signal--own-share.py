# diagnosis: One example has more
def noise_and_signal(gradients, batch):
    spread = gradients.var(axis=0, ddof=1).sum()
    return spread, (gradients.mean(axis=0) ** 2).sum() - spread / len(gradients)
