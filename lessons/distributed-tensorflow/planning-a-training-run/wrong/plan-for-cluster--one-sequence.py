# diagnosis: times as long as with the best plan
def best_plan(model, cluster):
    def divisors(number):
        return [divisor for divisor in range(1, number + 1) if number % divisor == 0]

    plans = [
        Plan(data, tensor, cluster.devices // tensor // data, zero, microbatch, rematerialize)
        for tensor in divisors(cluster.devices)
        for data in divisors(cluster.devices // tensor)
        if model.batch % data == 0
        for microbatch in (1,)
        for zero in range(4)
        for rematerialize in (False, True)
    ]
    fitting = [
        plan
        for plan in plans
        if plan.pipeline <= model.layers and total_memory(model, plan) <= cluster.memory
    ]
    return min(fitting, key=lambda plan: seconds(model, cluster, plan))
