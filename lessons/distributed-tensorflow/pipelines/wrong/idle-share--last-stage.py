# diagnosis: not the last one
def idle_share(times, microbatches):
    step = sum(times) + (microbatches - 1) * times[-1]
    return 1 - microbatches * sum(times) / (len(times) * step)
