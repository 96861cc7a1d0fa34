# diagnosis: One element more is ready
def waits_of_steps(reads, steps, ahead):
    """How long each step waits for its element. All times are in seconds."""
    waits, taken_at = [], []
    ready_at = asked_at = 0
    for number, (read, step) in enumerate(zip(reads, steps)):
        free_at = taken_at[number - ahead - 1] if number > ahead else 0
        ready_at = max(ready_at, free_at) + read
        taken_at.append(max(ready_at, asked_at))
        waits.append(taken_at[-1] - asked_at)
        asked_at = taken_at[-1] + step
    return waits
