# diagnosis: A chief trains as well
import json


def describe(tf_config):
    """How many machines train, my address, and whether I am the chief. tf_config: the text of the variable."""
    config = json.loads(tf_config)
    cluster, task = config["cluster"], config["task"]
    return len(cluster["worker"]), cluster[task["type"]][task["index"]], task["index"] == 0


cluster = {"chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222", "10.0.0.3:2222"]}
for task in ({"type": "chief", "index": 0}, {"type": "worker", "index": 0}):
    print(*describe(json.dumps({"cluster": cluster, "task": task})))
print("should be 3 10.0.0.1:2222 True and 3 10.0.0.2:2222 False")
