# diagnosis: keeps Python from starting the next one
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
    return np.median(times), max(times)
