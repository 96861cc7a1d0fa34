"""The declared patches: everything they rely on is in the installed libraries, and each has its test."""

from __future__ import annotations

import ast
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.factories.tensorflow_forks import Forges

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[5]

VERIFY = """
import importlib, json, sys
sys.modules["debugpy"] = None
import tensorflow as tf
for name in ("{package}", "altair", "tensorboard.notebook", "tensorflow_datasets", "tqdm.notebook"):
    importlib.import_module(name)
_ = tf.keras.optimizers, tf.keras.mixed_precision
from runners.guest.tf_patches.registry import verify
print(json.dumps(verify()))
"""


@pytest.fixture(scope="module", params=[3, 2], ids=["keras3", "keras2"])
def declared(request: pytest.FixtureRequest, forges: Forges) -> list[dict[str, Any]]:
    """Every patch, in a process with that Keras version."""
    package = "keras" if request.param == 3 else "tf_keras"
    ran = forges(request.param).run(VERIFY.format(package=package), "cpu")
    assert ran.status == 0, ran.output[-4000:]
    states: list[dict[str, Any]] = json.loads(ran.output.splitlines()[-1])
    return states


def test_nothing_that_a_patch_relies_on_has_moved(
    declared: list[dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    assert [state["problem"] for state in declared if state["problem"]] == []
    other = "tf_keras" if "keras3" in request.node.name else "keras"
    waiting = {
        state["target"].partition(":")[0].partition(".")[0] for state in declared if state["state"] == "not loaded"
    }
    assert waiting == {other}


def test_every_patch_says_why_it_exists_and_names_a_test_that_exists(declared: list[dict[str, Any]]) -> None:
    for state in declared:
        assert state["because"], state["target"]
        assert state["since"], state["target"]
    missing = {state["test"] for state in declared if not _exists(state["test"])}
    assert missing == set()


MOVED = """
import tensorflow as tf
from tensorflow.python.framework import device
device.combine_device = device.merge_device
del device.merge_device
from runners.guest.runtime.device_setup import set_up_devices
from runners.guest.tf_patches.registry import PatchTargetMoved, verify
from runners.wire.topology import Topology
print([state["problem"] for state in verify() if state["problem"]])
try:
    set_up_devices(Topology.parse("gpu:2"))
except PatchTargetMoved as e:
    print(e)
"""


def test_a_target_that_has_moved_in_tensorflow_is_named_and_nothing_is_simulated(forges: Forges) -> None:
    ran = forges(3).run(MOVED, "cpu")
    sentence = (
        "tensorflow.python.framework.device:merge_device: it does not exist. "
        "The patch 'gpu_names' was written for TensorFlow 2.21."
    )
    assert ran.status == 0, ran.output[-4000:]
    assert ran.output.splitlines()[-2:] == [str([sentence]), sentence]


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return name in _tests_in(file)


@functools.cache
def _tests_in(file: str) -> frozenset[str]:
    path = REPOSITORY / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions) and node.name.startswith("test_"))
