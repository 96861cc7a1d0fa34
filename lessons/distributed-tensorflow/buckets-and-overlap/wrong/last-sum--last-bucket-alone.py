# diagnosis: waits until the one before has arrived
def last_sum(buckets, devices, alpha, beta):
    for bucket in buckets:
        start = max(ready for ready, _ in bucket)
        size = sum(megabytes for _, megabytes in bucket)
        free = start + 2 * (devices - 1) * (alpha + beta * size / devices)
    return free
