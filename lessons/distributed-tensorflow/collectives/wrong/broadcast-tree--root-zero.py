# diagnosis: do not have the root's value in the end
def broadcast_tree(devices, root):
    schedule, known = [], 1
    while known < devices:
        schedule.append([(i, known + i, 0, "copy") for i in range(min(known, devices - known))])
        known *= 2
    return schedule
