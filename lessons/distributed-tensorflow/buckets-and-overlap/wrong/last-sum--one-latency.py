# diagnosis: in each of its 2(N - 1) rounds
def last_sum(buckets, devices, alpha, beta):
    time = 0.0
    for bucket in buckets:
        ready = max(ready for ready, _ in bucket)
        size = sum(megabytes for _, megabytes in bucket)
        time = max(time, ready) + alpha + 2 * (devices - 1) / devices * beta * size
    return time
