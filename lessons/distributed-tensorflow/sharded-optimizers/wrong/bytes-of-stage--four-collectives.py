# diagnosis: three collectives, not four
def bytes_of_stage(weights, devices, stage):
    piece = -(-weights // devices)
    held = 2 * (piece if stage >= 3 else weights)
    held += 2 * (piece if stage >= 2 else weights)
    held += 12 * (piece if stage >= 1 else weights)
    collectives = 4 if stage == 3 else 2
    return held, collectives * (devices - 1) * 2 * piece
