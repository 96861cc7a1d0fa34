# diagnosis: The host prepares the examples of all devices
def input_bound_from(batch, input_ms, compute_ms, fixed_ms, delay_ms, transfer_ms):
    """The smallest number of devices, from 1 to 64, that the input cannot keep up with; 0 if it always can."""
    for devices in range(1, 65):
        rounds = 2 * (devices - 1)
        step = fixed_ms + compute_ms * batch + rounds * delay_ms + rounds / devices * transfer_ms
        if input_ms * batch > step:
            return devices
    return 0


print(input_bound_from(64, 0.2, 1.0, 5.0, 0.05, 20.0), "should be 9")
print(input_bound_from(64, 0.01, 1.0, 5.0, 0.05, 20.0), "should be 0")
