# diagnosis: transfer numbers, too
def input_bound_from(batch, input_ms, compute_ms, fixed_ms, delay_ms, transfer_ms):
    for devices in range(1, 65):
        step = fixed_ms + compute_ms * batch + 2 * (devices - 1) * delay_ms
        if input_ms * batch * devices > step:
            return devices
    return 0
