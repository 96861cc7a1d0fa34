# diagnosis: Fewer are possible
def broadcast_tree(devices, root):
    return [[(root, device, 0, "copy")] for device in range(devices) if device != root]
