"""Which errors get a hint. ``tests/long/runner/test_error_hints.py`` provokes each of them in a session."""

from __future__ import annotations

import pytest

from runners.wire.error_hints import ERROR_HINTS, find_hint
from runners.wire.reports import NOTICE, NOTICES, parse_report

KERAS = ["cell", "/site-packages/keras/src/backend/tensorflow/trainer.py"]
OPTIMIZER = ["cell", "/site-packages/keras/src/backend/tensorflow/optimizer.py"]
INPUT = ["cell", "/site-packages/tensorflow/python/distribute/input_lib.py"]
RUN = ["cell", "/site-packages/tensorflow/python/distribute/distribute_lib.py"]
RESOLVER = ["cell", "/site-packages/tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py"]
REBATCH = ["cell", "/site-packages/tensorflow/python/data/experimental/ops/distribute.py"]
NOT_FED = "You must feed a value for placeholder tensor 'while/x'\n\t [Op:__inference_multi_step_on_iterator_1062]"
IN_A_CONDITION = (
    "Exception encountered when calling Cond.call().\n\n`merge_call` called while defining a new graph or a tf."
)
OF_SERVERS = "To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset."
PER_REPLICA = "Attempt to convert a value (PerReplica:{…}) with an unsupported type"
MIXED = "Mixing different tf.distribute.Strategy objects: <x.MirroredStrategy object> is not <x.{} object>"
MERGE = (
    "in user code:\n\n    RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often"
)
NO_GROUP = "HTTPSConnectionPool(host='example.org', port=443): Failed to resolve 'example.org'"
UNEQUAL = (
    "Inputs to operation AddN of type AddN must have the same size and shape.  Input 0: [1,4] != input 1: [0,4] "
    "[Op:AddN] name: "
)
EMPTY = (
    "2 root error(s) found.\n  (0) INTERNAL:  Missing 1-th output from {{node StatefulPartitionedCall/gradient_tape/"
    "replica_1/sequential/conv2d/convolution/Conv2DBackpropFilter}}"
)
FORMAT = "File format not supported: filepath=f. Keras 3 only supports V3 `.keras` files, legacy H5 format files"


@pytest.mark.parametrize(
    ("name", "text", "files", "keras", "code"),
    [
        ("RuntimeError", "Collective ops must be configured at program startup", [], 3, "strategy-comes-first"),
        ("RuntimeError", MIXED.format("_DefaultDistributionStrategy"), KERAS, 3, "outside-the-scope"),
        (
            "ValueError",
            "Variable (…) was not created in the distribution strategy scope of (…)",
            [],
            2,
            "outside-the-scope",
        ),
        ("AssertionError", "", OPTIMIZER, 3, "outside-the-scope"),
        ("AssertionError", "", KERAS, 3, None),
        ("AssertionError", "the learner's own", OPTIMIZER, 3, None),
        ("RuntimeError", MIXED.format("OneDeviceStrategy"), RUN, 3, "two-strategies"),
        (
            "RuntimeError",
            "Method requires being in cross-replica context, use get_replica_context().merge_call()",
            [],
            3,
            "in-a-replica",
        ),
        ("AttributeError", "'NoneType' object has no attribute 'all_reduce'", [], 3, "outside-the-replicas"),
        ("AttributeError", "'NoneType' object has no attribute 'shape'", [], 3, None),
        ("RuntimeError", IN_A_CONDITION, KERAS, 3, "update-in-a-condition"),
        ("RuntimeError", MERGE, [], 3, "reduction-in-a-condition"),
        ("TypeError", "unsupported operand type(s) for +: 'PerReplica' and 'int'", [], 3, "value-per-replica"),
        ("AttributeError", "'PerReplica' object has no attribute 'numpy'", [], 3, "value-per-replica"),
        (
            "TypeError",
            "float() argument must be a string or a real number, not 'PerReplica'",
            [],
            3,
            "value-per-replica",
        ),
        (
            "ValueError",
            "It looks like you are using a PerReplica object while not inside a replica context",
            [],
            3,
            "value-per-replica",
        ),
        ("ValueError", "positional args must be a list or tuple, got <class 'PerReplica'>", RUN, 3, "arguments-of-run"),
        (
            "TypeError",
            "StrategyBase.reduce() missing 1 required positional argument: 'axis'",
            [],
            3,
            "reduce-needs-an-axis",
        ),
        ("ValueError", "'AVG' is not a valid ReduceOp", [], 3, "sum-or-mean"),
        (
            "ValueError",
            "Could not convert from `tf.VariableAggregation` VariableAggregationV2.NONE to",
            [],
            3,
            "no-aggregation",
        ),
        (
            "ValueError",
            "Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for",
            [],
            2,
            "loss-reduction",
        ),
        ("InvalidArgumentError", "aborted by: Shape mismatch in the collective instance 100.", [], 3, "shapes-differ"),
        ("AttributeError", "'DistributedDataset' object has no attribute 'take'", [], 3, "dataset-already-distributed"),
        ("TypeError", "object of type 'DistributedDataset' has no len()", [], 3, "dataset-already-distributed"),
        ("AttributeError", "'numpy.ndarray' object has no attribute '_variant_tensor'", INPUT, 3, "not-a-dataset"),
        ("InvalidArgumentError", UNEQUAL, KERAS, 3, "unequal-shards"),
        ("InvalidArgumentError", UNEQUAL, [], 3, None),
        ("InternalError", EMPTY, [], 3, "unequal-shards"),
        ("InternalError", EMPTY.replace("replica_1/", ""), [], 3, None),
        ("IndexError", "list index out of range", REBATCH, 3, "batch-before-distributing"),
        ("IndexError", "list index out of range", INPUT, 3, None),
        ("TypeError", "'_BatchDataset' object is not callable", INPUT, 3, "function-of-a-dataset"),
        ("TypeError", "'_BatchDataset' object is not callable", ["cell"], 3, None),
        ("NotFoundError", "Found an unshardable source dataset: name: RangeDataset", [], 3, "nothing-to-shard-by-file"),
        ("RuntimeError", "Virtual devices cannot be modified after being initialized", [], 3, "devices-come-first"),
        ("RuntimeError", "Intra op parallelism cannot be modified after initialization.", [], 3, "devices-come-first"),
        ("ValueError", "Please provide a TPU Name to connect to.", [], 3, "no-tpu"),
        (
            "NotImplementedError",
            "TPUStrategy.run(fn, ...) does not support pure eager execution. please make",
            [],
            3,
            "tpu-needs-a-function",
        ),
        ("ValueError", "The `task_id` 3 exceeds the maximum id of worker.", [], 3, "tf-config"),
        ("JSONDecodeError", "Expecting property name enclosed in double quotes", RESOLVER, 3, "tf-config"),
        ("JSONDecodeError", "Expecting property name enclosed in double quotes", ["cell"], 3, None),
        ("ValueError", "Cluster spec must be non-empty in `tf.distribute.cluster_resolver`.", [], 3, "no-cluster"),
        (
            "TypeError",
            "`tf.distribute.experimental.coordinator.ClusterCoordinator.schedule` only accepts a",
            [],
            3,
            "schedule-a-function",
        ),
        ("AttributeError", "'RemoteValueImpl' object has no attribute 'numpy'", [], 3, "not-fetched"),
        (
            "TypeError",
            "CollectiveAllReduceStrategy.__init__() got an unexpected keyword argument 'communication'",
            [],
            3,
            "communication-options",
        ),
        ("URLError", "<urlopen error [Errno -3] Temporary failure in name resolution>", [], 3, "no-network"),
        ("ConnectionError", NO_GROUP, [], 3, "no-network"),
        ("ConnectionError", "the learner's own", [], 3, None),
        ("ModuleNotFoundError", "No module named 'torch'", [], 3, "package-missing"),
        ("ModuleNotFoundError", "No module named 'scipy'", [], 3, "package-missing"),
        ("ModuleNotFoundError", "No module named 'scipy.optimise'", [], 3, None),  # Python has found scipy
        ("ModuleNotFoundError", "No module named 'helper'", [], 3, None),
        ("ModuleNotFoundError", "No module named 'torchlight'", [], 3, None),
        (
            "ValueError",
            "tf.function only supports singleton tf.Variables created on the first call. Make",
            [],
            3,
            "variable-in-a-function",
        ),
        (
            "OperatorNotAllowedInGraphError",
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed.",
            [],
            3,
            "tensor-as-a-condition",
        ),
        ("AttributeError", "'SymbolicTensor' object has no attribute 'numpy'", [], 3, "numpy-in-a-function"),
        (
            "TypeError",
            "<tf.Tensor 'mul:0'> is out of scope and cannot be used here. Use return values",
            [],
            3,
            "tensor-left-its-function",
        ),
        ("InvalidArgumentError", NOT_FED, KERAS, 3, "steps-per-execution"),
        ("InvalidArgumentError", NOT_FED, KERAS, 2, None),
        ("InvalidArgumentError", NOT_FED.replace("multi_step", "one_step"), KERAS, 3, None),
        ("ValueError", PER_REPLICA, KERAS, 3, "keras-2-for-fit"),
        ("ValueError", PER_REPLICA, KERAS, 2, None),
        ("ValueError", PER_REPLICA, ["cell"], 3, None),
        ("ValueError", OF_SERVERS, KERAS, 3, "keras-2-for-fit-with-servers"),
        ("ValueError", OF_SERVERS, ["cell"], 3, None),
        ("ValueError", "No gradients provided for any variable.", KERAS, 3, "no-gradients"),
        (
            "ValueError",
            "Argument `output` must have rank (ndim) `target.ndim - 1`. Received:",
            KERAS,
            3,
            "one-hot-labels",
        ),
        (
            "InvalidArgumentError",
            "cannot compute AddV2 as input #1 was expected to be a half tensor but is a float tensor",
            [],
            3,
            "mixed-types",
        ),
        ("ImportError", "`keras.optimizers.legacy` is not supported in Keras 3. When using", [], 3, "legacy-optimizer"),
        (
            "AttributeError",
            "module 'keras.optimizers' has no attribute 'experimental'",
            [],
            3,
            "no-longer-experimental",
        ),
        ("AttributeError", "module 'keras.callbacks' has no attribute 'experimental'", [], 3, "no-longer-experimental"),
        ("AttributeError", "'Sequential' object has no attribute 'reset_states'", [], 3, "renamed-in-keras-3"),
        ("AttributeError", "'Sequential' object has no attribute 'reset_states'", [], 2, None),
        ("AttributeError", "'AdamW' object has no attribute 'lr'", [], 3, "renamed-in-keras-3"),
        ("AttributeError", "'Mine' object has no attribute 'lr'", [], 3, None),
        ("ValueError", "Argument(s) not recognized: {'decay': 0.1, 'lr': 0.1}", KERAS, 3, "renamed-in-keras-3"),
        ("AttributeError", "module 'keras.utils' has no attribute 'SidecarEvaluator'", [], 3, "only-in-keras-2"),
        ("AttributeError", "module 'keras._tf_keras.keras' has no attribute 'dtensor'", [], 3, "only-in-keras-2"),
        (
            "AttributeError",
            "module 'tensorflow_hub' has no attribute 'KerasLayer' with Keras 3",
            [],
            3,
            "only-in-keras-2",
        ),
        ("AttributeError", "module 'keras.utils' has no attribute 'sidecar'", [], 3, None),
        ("AttributeError", "`Dense` is not available with Keras 3.", [], 3, "layers-of-tensorflow-1"),
        (
            "AttributeError",
            "'LossScaleOptimizer' object has no attribute 'get_unscaled_gradients'",
            [],
            3,
            "loss-scaling",
        ),
        ("ValueError", "Invalid filepath extension for saving. Please add either", KERAS, 3, "file-name-to-save"),
        ("ValueError", "The filename must end in `.weights.h5`. Received: filepath=x", KERAS, 3, "file-name-to-save"),
        ("ValueError", FORMAT, KERAS, 3, "file-name-to-save"),
        (
            "AttributeError",
            "'MirroredStrategy' object has no attribute 'experimental_run_v2'",
            [],
            3,
            "run-has-a-new-name",
        ),
        (
            "AttributeError",
            "'MirroredStrategy' object has no attribute 'experimental_make_numpy_dataset'",
            [],
            3,
            "datasets-of-arrays",
        ),
        ("AttributeError", "module 'tensorflow' has no attribute 'Session'", [], 3, "tensorflow-1"),
        ("AttributeError", "module 'tensorflow' has no attribute 'Sessions'", [], 3, None),
        ("AttributeError", "module 'tensorflow' has no attribute 'estimator'", [], 3, "estimators-are-gone"),
        ("AttributeError", "module 'tensorflow.compat.v1' has no attribute 'estimator'", [], 2, "estimators-are-gone"),
        ("AttributeError", "module 'keras._tf_keras.keras' has no attribute 'estimator'", [], 3, "estimators-are-gone"),
        ("ImportError", "cannot import name 'estimator' from 'tensorflow' (…)", [], 3, "estimators-are-gone"),
        ("ModuleNotFoundError", "No module named 'tensorflow_estimator'", [], 3, "estimators-are-gone"),
        ("AttributeError", "module 'keras.utils' has no attribute 'multi_gpu_model'", [], 3, "multi-gpu-model"),
        ("ValueError", "something else", KERAS, 3, None),
    ],
)
def test_a_usual_mistake_gets_its_sentence_and_other_errors_get_none(
    name: str, text: str, files: list[str], keras: int, code: str | None
) -> None:
    hint = find_hint(name, text, files, keras)

    assert (hint and hint[0]) == code
    if hint is not None:  # every client can show it
        told = parse_report({NOTICE: {"code": hint[0], "values": hint[1]}})
        assert told is not None
        assert told[1]["text"] == NOTICES[hint[0]].format_map(hint[1])


def test_every_mistake_has_a_case_and_one_code() -> None:
    codes = [hint.code for hint in ERROR_HINTS]
    parameters = test_a_usual_mistake_gets_its_sentence_and_other_errors_get_none.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert len(codes) == len(set(codes)) >= 40
    assert set(codes) == {code for *_, code in parameters} - {None}


def test_a_hint_names_what_was_asked_for() -> None:
    assert find_hint("ModuleNotFoundError", "No module named 'jax'", [], 3) == (
        "package-missing",
        {"package": "jax"},
    )
    wanted = "module 'tensorflow' has no attribute 'placeholder'"
    assert find_hint("AttributeError", wanted, [], 3) == ("tensorflow-1", {"name": "placeholder"})


def test_only_the_beginning_of_a_very_long_message_is_searched() -> None:
    assert find_hint("RuntimeError", "x" * 10**7 + "cannot be modified after initialization", [], 3) is None
