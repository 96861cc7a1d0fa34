# diagnosis: Nothing is sent here before
def last_sum(buckets, devices, alpha, beta):
    time = max(ready for bucket in buckets for ready, _ in bucket)
    for bucket in buckets:
        size = sum(megabytes for _, megabytes in bucket)
        time += 2 * (devices - 1) * (alpha + beta * size / devices)
    return time
