"""Which errors get a hint."""

from __future__ import annotations

import pytest

from runners.guest.runtime.error_hints import hint_for_error
from runners.wire.reports import NOTICES

KERAS = ["cell", "/site-packages/keras/src/backend/tensorflow/trainer.py"]
PER_REPLICA = "Attempt to convert a value (PerReplica:{…}) with an unsupported type"
OF_SERVERS = "To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset."
NOT_FED = "You must feed a value for placeholder tensor 'while/cond/x' [Op:__inference_multi_step_on_iterator_1062]"
IN_A_CONDITION = "Exception encountered when calling Cond.call(). `merge_call` called while defining a new graph or a …"
STARTUP = "Collective ops must be configured at program startup"


@pytest.mark.parametrize(
    ("name", "text", "frames", "keras", "code"),
    [
        ("RuntimeError", STARTUP, ["cell"], 3, "strategy-comes-first"),
        ("ValueError", PER_REPLICA, KERAS, 3, "keras-2-for-fit"),
        ("ValueError", PER_REPLICA, KERAS, 2, None),
        ("ValueError", PER_REPLICA, ["cell"], 3, None),
        ("ValueError", OF_SERVERS, KERAS, 3, "keras-2-for-fit-with-servers"),
        ("ValueError", OF_SERVERS, ["cell"], 3, None),
        ("InvalidArgumentError", NOT_FED, KERAS, 3, "steps-per-execution"),
        ("InvalidArgumentError", NOT_FED, KERAS, 2, None),
        ("InvalidArgumentError", NOT_FED.replace("multi_step", "one_step"), KERAS, 3, None),
        ("RuntimeError", IN_A_CONDITION, KERAS, 3, "update-in-a-condition"),
        ("RuntimeError", IN_A_CONDITION, ["cell"], 3, None),
        ("RuntimeError", IN_A_CONDITION.replace("Cond.call()", "Dense.call()"), KERAS, 3, None),
        ("ValueError", "something else", KERAS, 3, None),
    ],
)
def test_an_error_that_only_an_expert_understands_gets_a_sentence_and_no_other_does(
    name: str, text: str, frames: list[str], keras: int, code: str | None
) -> None:
    assert hint_for_error(name, text, frames, keras) == code
    assert code is None or code in NOTICES
