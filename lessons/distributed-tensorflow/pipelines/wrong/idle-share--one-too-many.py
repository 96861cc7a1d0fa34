# diagnosis: only m - 1 follow it
def idle_share(times, microbatches):
    step = sum(times) + microbatches * max(times)
    return 1 - microbatches * sum(times) / (len(times) * step)
