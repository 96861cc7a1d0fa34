# diagnosis: do not have the sum of all
def hierarchical(machines, gpus):
    blocks = [[gpu * machines + part for part in range(machines)] for gpu in range(gpus)]
    inside = [([machine * gpus + gpu for gpu in range(gpus)], blocks) for machine in range(machines)]
    return rings(inside, "add") + rings(inside, "copy")
