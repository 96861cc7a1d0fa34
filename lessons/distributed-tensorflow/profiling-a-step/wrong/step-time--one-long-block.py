# diagnosis: expected
def step_time(step, wait, clock, warm_up, blocks, size):
    for _ in range(warm_up):
        step()
    wait()
    start = clock()
    for _ in range(blocks * size):
        step()
    wait()
    mean = (clock() - start) / (blocks * size)
    return mean, mean
