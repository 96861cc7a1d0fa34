# diagnosis: from 0 to 1
def idle_share(times, microbatches):
    step = sum(times) + (microbatches - 1) * max(times)
    return 100 * (1 - microbatches * sum(times) / (len(times) * step))
