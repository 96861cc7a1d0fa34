# diagnosis: Each device holds all of gate
def layouts():
    return {"x": ["batch", WHOLE]} | {name: [WHOLE, WHOLE] for name in ("gate", "up", "down", "table")}
