# diagnosis: a device sends more than one message
def broadcast_tree(devices, root):
    return [[(root, device, 0, "copy") for device in range(devices) if device != root]]
