# diagnosis: The first steps are among those that count
def step_time(step, wait, clock, warm_up, blocks, size):
    times = []
    for _ in range(blocks):
        start = clock()
        for _ in range(size):
            step()
        wait()
        times.append((clock() - start) / size)
    return np.median(times), max(times)
