# diagnosis: as without a prefetch
def waits_of_steps(reads, steps, ahead):
    """How long each step waits for its element. All times are in seconds."""
    return reads
