# diagnosis: Only the slowest stage takes that long
def idle_share(times, microbatches):
    stages = len(times)
    step = max(times) * (microbatches + stages - 1)
    return 1 - microbatches * sum(times) / (stages * step)
