# diagnosis: and 15 cannot be halved
def diagnose(model, cluster, plan):
    parts = memory_of(model, plan)
    changes = []
    if plan.zero < 3:
        changes.append({"zero": plan.zero + 1})
    if plan.microbatch % 2 == 0:
        changes.append({"microbatch": plan.microbatch // 2})
    if not plan.rematerialize:
        changes.append({"rematerialize": True})
    if plan.data > 1:
        if cluster.machine % (2 * plan.tensor) == 0:
            changes.append({"tensor": 2 * plan.tensor, "data": plan.data // 2})
        if 2 * plan.pipeline <= model.layers:
            changes.append({"pipeline": 2 * plan.pipeline, "data": plan.data // 2})
    plans = [plan._replace(**change) for change in changes]
    fitting = [other for other in plans if total_memory(model, other) <= cluster.memory]
    best = min(fitting, key=lambda other: seconds(model, cluster, other), default=None)
    return max(parts, key=parts.get), best
