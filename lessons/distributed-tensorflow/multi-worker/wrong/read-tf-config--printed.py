# diagnosis: Only one is the chief
def describe(tf_config):
    """What the cell is meant to print, whatever the configuration."""
    import json

    config = json.loads(tf_config)
    workers = config["cluster"]["worker"]
    return len(workers) + len(config["cluster"].get("chief", [])), workers[config["task"]["index"]], True
