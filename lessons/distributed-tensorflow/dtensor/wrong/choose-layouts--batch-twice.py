# diagnosis: so a weight that it cuts has to be gathered
def layouts():
    return {
        "x": ["batch", WHOLE],
        "gate": [WHOLE, "model"],
        "up": [WHOLE, "model"],
        "down": ["model", WHOLE],
        "table": ["batch", WHOLE],
    }
