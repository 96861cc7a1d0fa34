# diagnosis: not on the device of its own number
def reduce_scatter_ring(devices):
    return [
        [(device, (device + 1) % devices, (device - step) % devices, "add") for device in range(devices)]
        for step in range(devices - 1)
    ]
