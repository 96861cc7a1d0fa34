# diagnosis: with the work, not with the whole time
def idle_share(times, microbatches):
    step = sum(times) + (microbatches - 1) * max(times)
    return len(times) * step / (microbatches * sum(times)) - 1
