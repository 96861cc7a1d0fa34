# diagnosis: x has another layout
def layouts():
    return {
        "x": [WHOLE, WHOLE],
        "gate": [WHOLE, "model"],
        "up": [WHOLE, "model"],
        "down": ["model", WHOLE],
        "table": ["model", WHOLE],
    }
