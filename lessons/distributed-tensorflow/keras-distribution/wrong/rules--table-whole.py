# diagnosis: Each device holds all of embedding/embeddings
def rules():
    return {
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*up/kernel": (None, "model"),
        ".*down/kernel": ("model", None),
    }
