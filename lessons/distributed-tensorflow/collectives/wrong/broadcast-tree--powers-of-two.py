# diagnosis: there is no such device or piece
def broadcast_tree(devices, root):
    schedule, known = [], 1
    while known < devices:
        schedule.append([((root + i) % devices, known + i, 0, "copy") for i in range(known)])
        known *= 2
    return schedule
