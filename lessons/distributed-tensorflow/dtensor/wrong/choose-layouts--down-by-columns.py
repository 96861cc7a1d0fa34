# diagnosis: Cut it between rows
def layouts():
    return {
        "x": ["batch", WHOLE],
        "gate": [WHOLE, "model"],
        "up": [WHOLE, "model"],
        "down": [WHOLE, "model"],
        "table": ["model", WHOLE],
    }
