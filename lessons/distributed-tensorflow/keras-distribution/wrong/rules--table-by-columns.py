# diagnosis: Cut the table between words
def rules():
    return {
        "embedding/embeddings": (None, "model"),
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*up/kernel": (None, "model"),
        ".*down/kernel": ("model", None),
    }
