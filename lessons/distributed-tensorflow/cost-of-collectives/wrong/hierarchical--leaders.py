# diagnosis: In a ring it would send
def hierarchical(machines, gpus):
    """The first GPU of each machine adds up, exchanges with the others, and hands out."""
    whole = list(range(machines * gpus))
    leaders = [machine * gpus for machine in range(machines)]
    blocks = [whole[leader : leader + gpus] for leader in leaders]
    up = [[(leader + gpu, leader, whole, "add") for leader in leaders] for gpu in range(1, gpus)]
    down = [[(leader, leader + gpu, whole, "copy") for leader in leaders] for gpu in range(1, gpus)]
    return up + rings([(leaders, blocks)], "add") + rings([(leaders, blocks)], "copy") + down
