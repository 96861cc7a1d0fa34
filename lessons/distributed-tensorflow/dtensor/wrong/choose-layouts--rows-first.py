# diagnosis: The rows of `gate` and `up` are contracted
def layouts():
    return {
        "x": ["batch", WHOLE],
        "gate": ["model", WHOLE],
        "up": ["model", WHOLE],
        "down": [WHOLE, "model"],
        "table": ["model", WHOLE],
    }
