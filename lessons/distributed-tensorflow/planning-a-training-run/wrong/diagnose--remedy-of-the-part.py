# diagnosis: is not the largest part
def diagnose(model, cluster, plan):
    if memory_of(model, plan)["activations"] > 0.3 * total_memory(model, plan):
        return "activations", plan._replace(rematerialize=True)
    return "optimizer", plan._replace(zero=min(3, plan.zero + 1))
