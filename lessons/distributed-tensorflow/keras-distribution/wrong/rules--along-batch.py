# diagnosis: Leave it to the examples
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*up/kernel": (None, "batch"),
        ".*down/kernel": ("batch", None),
    }
