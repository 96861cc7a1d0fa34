# diagnosis: The columns of `table` are contracted
def layouts():
    return {
        "x": ["batch", WHOLE],
        "gate": [WHOLE, "model"],
        "up": [WHOLE, "model"],
        "down": ["model", WHOLE],
        "table": [WHOLE, "model"],
    }
