# diagnosis: still in the queue when the first block starts
def step_time(step, wait, clock, warm_up, blocks, size):
    for _ in range(warm_up):
        step()
    times = []
    for _ in range(blocks):
        start = clock()
        for _ in range(size):
            step()
        wait()
        times.append((clock() - start) / size)
    return np.median(times), max(times)
