# diagnosis: The rows of block_0_up/kernel are contracted
def rules():
    return {
        "embedding/embeddings": ("model", None),
        ".*(query|key|value)/kernel": (None, "model", None),
        ".*attention_output/kernel": ("model", None, None),
        ".*up/kernel": ("model", None),
        ".*down/kernel": (None, "model"),
    }
