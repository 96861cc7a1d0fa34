# diagnosis: does not use exactly those
def best_plan(model, cluster):
    plans = []
    for tensor in (1, 2, 4):
        for pipeline in (1, 2, 4, 8, 16):
            data = cluster.devices // tensor // pipeline
            for microbatch in (1, 2, 4, 8):
                for zero in range(4):
                    if data:
                        plans.append(Plan(data, tensor, pipeline, zero, microbatch, False))
                        plans.append(Plan(data, tensor, pipeline, zero, microbatch, True))
    fitting = [plan for plan in plans if total_memory(model, plan) <= cluster.memory]
    return min(fitting, key=lambda plan: seconds(model, cluster, plan))
