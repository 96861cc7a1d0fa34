# diagnosis: waits until the one before has arrived
def last_sum(buckets, devices, alpha, beta):
    ends = []
    for bucket in buckets:
        ready = max(ready for ready, _ in bucket)
        size = sum(megabytes for _, megabytes in bucket)
        ends.append(ready + 2 * (devices - 1) * (alpha + beta * size / devices))
    return max(ends)
