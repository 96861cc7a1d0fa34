# diagnosis: divide by N - 1
def noise_and_signal(gradients, batch):
    spread = gradients.var(axis=0).sum()
    return batch * spread, (gradients.mean(axis=0) ** 2).sum() - spread / len(gradients)
