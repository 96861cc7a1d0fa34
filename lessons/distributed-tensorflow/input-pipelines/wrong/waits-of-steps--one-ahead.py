# diagnosis: right for `ahead = 1` only
def waits_of_steps(reads, steps, ahead):
    """How long each step waits for its element. All times are in seconds."""
    return [reads[0]] + [max(read - step, 0) for read, step in zip(reads[1:], steps)]
