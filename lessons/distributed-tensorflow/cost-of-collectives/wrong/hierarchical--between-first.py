# diagnosis: leave a machine
def hierarchical(machines, gpus):
    """The right groups in the wrong order: whole values cross the network."""
    blocks = [[machine * gpus + part for part in range(gpus)] for machine in range(machines)]
    between = [([machine * gpus + gpu for machine in range(machines)], blocks) for gpu in range(gpus)]
    inside = [
        ([machine * gpus + gpu for gpu in range(gpus)], [[piece] for piece in blocks[machine]])
        for machine in range(machines)
    ]
    return rings(between, "add") + rings(inside, "add") + rings(inside, "copy") + rings(between, "copy")
