# diagnosis: has 2 axes
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*up.*": (None, "model"),
        ".*down/kernel": ("model", None),
    }
