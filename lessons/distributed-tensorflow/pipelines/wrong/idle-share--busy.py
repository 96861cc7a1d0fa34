# diagnosis: in which the devices work
def idle_share(times, microbatches):
    step = sum(times) + (microbatches - 1) * max(times)
    return microbatches * sum(times) / (len(times) * step)
