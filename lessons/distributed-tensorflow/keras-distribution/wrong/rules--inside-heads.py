# diagnosis: between heads, so that
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*(query|key|value)/kernel": (None, None, "model"),
        ".*attention_output/kernel": (None, "model", None),
        ".*up/kernel": (None, "model"),
        ".*down/kernel": ("model", None),
    }
