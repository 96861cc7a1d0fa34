# diagnosis: the schedule takes
def hierarchical(machines, gpus):
    blocks = [[gpu * machines + part for part in range(machines)] for gpu in range(gpus)]
    inside = [([machine * gpus + gpu for gpu in range(gpus)], blocks) for machine in range(machines)]
    between = [
        ([machine * gpus + gpu for machine in range(machines)], [[piece] for piece in blocks[gpu]])
        for gpu in range(gpus)
    ]

    def one_by_one(groups, how):
        return [messages for group in groups for messages in rings([group], how)]

    return one_by_one(inside, "add") + rings(between, "add") + rings(between, "copy") + one_by_one(inside, "copy")
