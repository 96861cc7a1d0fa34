# diagnosis: not when the first one is
def last_sum(buckets, devices, alpha, beta):
    time = 0.0
    for bucket in buckets:
        ready = min(ready for ready, _ in bucket)
        size = sum(megabytes for _, megabytes in bucket)
        time = max(time, ready) + 2 * (devices - 1) * (alpha + beta * size / devices)
    return time
