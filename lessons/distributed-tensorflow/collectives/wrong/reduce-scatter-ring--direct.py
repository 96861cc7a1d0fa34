# diagnosis: not to its right neighbor
def reduce_scatter_ring(devices):
    return [
        [(device, (device + step) % devices, (device + step) % devices, "add") for device in range(devices)]
        for step in range(1, devices)
    ]
