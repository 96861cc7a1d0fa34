# diagnosis: formula for equal stages
def idle_share(times, microbatches):
    stages = len(times)
    return (stages - 1) / (microbatches + stages - 1)
