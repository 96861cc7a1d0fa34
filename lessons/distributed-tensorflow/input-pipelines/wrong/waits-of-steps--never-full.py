# diagnosis: although the buffer is full
def waits_of_steps(reads, steps, ahead):
    """How long each step waits for its element. All times are in seconds."""
    waits, taken_at = [], []
    ready_at = asked_at = 0
    for number, (read, step) in enumerate(zip(reads, steps)):
        ready_at = ready_at + read
        taken_at.append(max(ready_at, asked_at))
        waits.append(taken_at[-1] - asked_at)
        asked_at = taken_at[-1] + step
    return waits
