# diagnosis: contracts the heads
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*attention.*kernel": (None, "model", None),
        ".*up/kernel": (None, "model"),
        ".*down/kernel": ("model", None),
    }
