# diagnosis: the mean of the blocks, not their median
def step_time(step, wait, clock, warm_up, blocks, size):
    for _ in range(warm_up):
        step()
    wait()
    times = []
    for _ in range(blocks):
        start = clock()
        for _ in range(size):
            step()
        wait()
        times.append((clock() - start) / size)
    return np.mean(times), max(times)
