# diagnosis: DTensor refuses these layouts
def layouts():
    return {
        "x": ["batch", WHOLE],
        "gate": [WHOLE, "model"],
        "up": [WHOLE, "model"],
        "down": ["batch", WHOLE],
        "table": ["model", WHOLE],
    }
