"""Chooses hints for errors that come from TensorFlow's own limits and are hard to understand. Pure."""

from __future__ import annotations

_NOT_FED = "You must feed a value for placeholder tensor"
_SEVERAL_STEPS = "multi_step_on_iterator"
_STARTUP = "Collective ops must be configured at program startup"
_WITHIN_A_CONDITION = ("Cond.call()", "`merge_call` called while defining a new graph")
_DATASET_OF_SERVERS = "you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset"


def hint_for_error(name: str, text: str, frames: list[str], keras: int) -> str | None:
    """The code of a notice (see ``runners.wire.reports``) about an error, or None.

    Args:
        name: the error's class.
        text: its message.
        frames: the names of the files in its traceback.
        keras: the Keras version in use.
    """
    if name == "RuntimeError" and _STARTUP in text:
        return "strategy-comes-first"
    of_keras = any("/keras/src/" in file for file in frames)
    if keras == 3 and of_keras and name == "InvalidArgumentError" and _NOT_FED in text and _SEVERAL_STEPS in text:
        return "steps-per-execution"
    if keras == 3 and of_keras and name == "RuntimeError" and all(words in text for words in _WITHIN_A_CONDITION):
        return "update-in-a-condition"
    if keras == 3 and of_keras and name in ("ValueError", "TypeError") and "PerReplica" in text:
        return "keras-2-for-fit"
    if keras == 3 and of_keras and name == "ValueError" and _DATASET_OF_SERVERS in text:
        return "keras-2-for-fit-with-servers"
    return None
