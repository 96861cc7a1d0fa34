# diagnosis: does not hold the sum of all devices
def reduce_scatter_ring(devices):
    return [
        [(device, (device + 1) % devices, device, "add") for device in range(devices)] for step in range(devices - 1)
    ]
