# diagnosis: Two of your patterns match
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*kernel": (None, "model"),
        ".*down/kernel": ("model", None),
    }
