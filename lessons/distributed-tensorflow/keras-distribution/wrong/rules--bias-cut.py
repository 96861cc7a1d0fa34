# diagnosis: Leave it whole, too
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*up/kernel": (None, "model"),
        ".*down/kernel": ("model", None),
        ".*down/bias": ("model",),
    }
