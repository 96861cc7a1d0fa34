"""Unmodified programs for a TPU on a simulated one, in one process for each version of Keras."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import NoticeEvent, Outcome
from tests.factories.real_supervisor import SessionClient
from tests.factories.tensorflow_forks import Forges

HARNESS = """
import contextlib, io, json, linecache
from runners.guest.reporting import publisher
from runners.wire.reports import parse_report

notices = []
publisher.set_sink(lambda kind, content, lane: notices.append(parse_report(content["data"])[1]["text"]))
results = {{}}
names = {{"__name__": "__main__"}}
for name, code in json.loads({programs!r}).items():
    notices.clear()
    printed, error, file = io.StringIO(), "", f"<{{name}}>"
    linecache.cache[file] = len(code), None, code.splitlines(True), file  # AutoGraph reads the source
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, file, "exec"), names)
    except Exception as e:
        error = "\\n".join([f"{{type(e).__name__}}: {{e}}", *getattr(e, "__notes__", ())])
    results[name] = {{"printed": printed.getvalue(), "error": error, "notices": list(notices)}}
print("RESULTS" + json.dumps(results))
"""

PRELUDE = """
import numpy as np
import tensorflow as tf
print(len(tf.config.list_physical_devices('TPU')), len(tf.config.list_logical_devices('TPU')))
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
"""
STRATEGY = """
tf.config.experimental_connect_to_cluster(resolver)
topology = tf.tpu.experimental.initialize_tpu_system(resolver)
print([d.name for d in tf.config.list_logical_devices('TPU')], len(tf.config.list_logical_devices('CPU')))
print(topology.mesh_shape.tolist(), topology.device_coordinates.shape)
strategy = tf.distribute.TPUStrategy(resolver)
print(strategy.num_replicas_in_sync, type(strategy) is tf.distribute.TPUStrategy)
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 8)).astype('float32')
y = x.sum(1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(16, drop_remainder=True)

def build():
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input((8,)), layers.Dense(4, 'tanh'), layers.Dense(1)])

def weights(model):
    return np.concatenate([w.ravel() for w in model.get_weights()])
"""
LOOP = """
with strategy.scope():
    model = build()
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    seen = tf.keras.metrics.Mean()

def step_fn(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.reduce_sum((model(features, training=True) - labels) ** 2, -1),
                                          global_batch_size=16)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    seen.update_state(loss)
    return loss

@tf.function
def train_step(iterator):
    return strategy.run(step_fn, args=(next(iterator),))

@tf.function
def train_steps(iterator, steps):
    for _ in tf.range(steps):
        strategy.run(step_fn, args=(next(iterator),))

iterator = iter(strategy.experimental_distribute_dataset(dataset))
losses = [float(strategy.reduce(tf.distribute.ReduceOp.SUM, train_step(iterator), axis=None)) for _ in range(2)]
train_steps(iterator, tf.constant(2))
print(type(optimizer.variables[-1] if not callable(optimizer.variables) else optimizer.variables()[-1]).__name__ != '')
print(losses[1] < losses[0], float(seen.result()) > 0)
"""
EQUIVALENCE = """
reference = build()
velocity = [tf.zeros_like(w) for w in reference.trainable_variables]
for features, labels in dataset:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.reduce_sum((reference(features, training=True) - labels) ** 2, -1))
    for i, (g, w) in enumerate(zip(tape.gradient(loss, reference.trainable_variables), reference.trainable_variables)):
        velocity[i] = 0.9 * velocity[i] - 0.1 * g
        w.assign_add(velocity[i])
print(float(np.abs(weights(reference) - weights(model)).max()))
"""
FIT = """
two = tf.tpu.experimental.DeviceAssignment.build(topology, num_replicas=2)  # half of the tracing
pair = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=two)
with pair.scope():
    model = build()
    model.compile('sgd', 'mse', metrics=['mae'], steps_per_execution=2)
history = model.fit(dataset, epochs=2, verbose=0).history
print(history['loss'][1] < history['loss'][0])
alone = build()
alone.compile('sgd', 'mse', metrics=['mae'])
alone.fit(dataset, epochs=2, verbose=0)
print(float(np.abs(weights(alone) - weights(model)).max()))
print([round(abs(a - b), 4) for a, b in zip(model.evaluate(dataset, verbose=0), alone.evaluate(dataset, verbose=0))])
print(np.allclose(model.predict(x, verbose=0), alone.predict(x, verbose=0), atol=1e-4))
"""
PROGRAMS = {
    "prelude": PRELUDE,
    "too early": "tf.distribute.TPUStrategy(resolver)",
    "strategy": STRATEGY,
    "loop": LOOP,
    "equivalence": EQUIVALENCE,
    "fit": FIT,
    "an optimizer in a tf.function": """
with strategy.scope():
    weight = tf.Variable(1.0)
    plain = tf.keras.optimizers.SGD(0.5)
    plain.build([weight])
@tf.function(jit_compile=True)
def update(value):
    with tf.GradientTape() as tape:
        loss = weight * tf.reduce_sum(value)
    plain.apply_gradients([(tape.gradient(loss, weight), weight)])
@tf.function
def outer(values): strategy.run(update, args=(values,))
outer(strategy.experimental_distribute_values_from_function(lambda c: tf.constant(0.25)))
print(float(weight.numpy()))
""",
    "bfloat16": """
tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')
try:
    with pair.scope():
        half = build()
        half.compile('sgd', 'mse')
    print(np.isfinite(half.fit(dataset, verbose=0).history['loss'][0]), half.layers[-1].compute_dtype)
finally: tf.keras.mixed_precision.set_global_policy('float32')
""",
    "shut down": """
tf.tpu.experimental.shutdown_tpu_system(resolver)
print(len(tf.config.list_logical_devices('TPU')))
""",
}
"""What has to do with Keras, or is what everything else needs; in this order."""
RULES = {
    "prelude": PRELUDE,
    "strategy": STRATEGY,
    "names": """
for name in (None, 'local', 'my-tpu', 'grpc://10.0.0.2:8470'):
    other = tf.distribute.cluster_resolver.TPUClusterResolver(name, zone='z', project='p')
    tf.config.experimental_connect_to_cluster(other)
    if other.master(): tf.config.experimental_connect_to_host(other.master().replace('10.0.0.2', 'simulated-tpu'))
    print(other.master(), other.cluster_spec().as_dict(), other.num_accelerators())
print(tf.distribute.cluster_resolver.TPUClusterResolver.connect('my-tpu').get_tpu_system_metadata().num_cores)
old = tf.distribute.experimental.TPUStrategy(resolver)
print(isinstance(old, tf.distribute.experimental.TPUStrategy), old.num_replicas_in_sync)
few = tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=[1, 1, 1, 2], num_replicas=2)
print(tf.distribute.TPUStrategy(resolver, experimental_device_assignment=few).num_replicas_in_sync)
extended = strategy.extended
print(extended.num_hosts, extended.num_replicas_per_host, extended._tpu_devices.shape, extended.steps_per_run)
with strategy.scope():
    print(type(tf.Variable(1.0)).__name__)
with tf.device('/TPU:3'):
    print(float(tf.reduce_sum(tf.matmul([[1.0, 2.0]], [[3.0], [4.0]]))))
""",
    "no such core": "with tf.device('/TPU:9'): tf.zeros([])",
    "eager": "strategy.run(lambda: 1)",
    "a tf.function of its own": """
@tf.function
def double(value): return value * 2
@tf.function
def replica_fn(inputs): return tf.reduce_sum(double(inputs[0]))
once = next(iter(strategy.experimental_distribute_dataset(dataset)))
total = strategy.reduce('SUM', strategy.run(replica_fn, args=(once,)), axis=None)
print(abs(float(total) - 2 * float(x[:16].sum())) < 1e-3)
print(strategy.gather(once[0], axis=0).shape)
""",
    "jit around run": """
@tf.function(jit_compile=True)
def outer(): return strategy.run(lambda: tf.constant(1.0))
outer()
""",
    "python": """
@tf.function
def outer(iterator):
    def python_step(inputs):
        return tf.py_function(lambda a: a * 2, [inputs[0]], tf.float32)
    return strategy.run(python_step, args=(next(iterator),))
outer(iter(strategy.experimental_distribute_dataset(dataset)))
""",
    "text": """
@tf.function
def outer(iterator):
    def text_step(inputs):
        return tf.strings.length(tf.strings.as_string(inputs[0]))
    return strategy.run(text_step, args=(next(iterator),))
outer(iter(strategy.experimental_distribute_dataset(dataset)))
""",
    "rules": """
@tf.function
def outer(iterator):
    def loose_step(inputs):
        kept = tf.boolean_mask(inputs[0], inputs[0][:, 0] > 0)
        tf.print('x', output_stream='file:///dev/null')
        if tf.reduce_sum(inputs[0]) > 0:
            wide = tf.matmul(tf.cast(inputs[0], tf.float64), tf.ones([8, 1], tf.float64))
        else:
            wide = tf.zeros([4, 1], tf.float64)
        return tf.reduce_sum(kept), wide
    return strategy.run(loose_step, args=(next(iterator),))
tf.config.set_soft_device_placement(True)
for _ in range(2): outer(iter(strategy.experimental_distribute_dataset(dataset)))
""",
    "sizes": """
@tf.function
def outer(iterator):
    def sizes_step(inputs):
        values = inputs[0]
        positive = tf.reduce_sum(tf.cast(values[:, 0] > 0, tf.int32))
        some = values[:positive]
        numbers = tf.range(positive)
        like = tf.fill([tf.shape(values)[0], 2], 1.0)
        total = 0.0
        for index in tf.range(positive):
            total += values[index, 0]
        return tf.reduce_sum(some) + tf.cast(tf.reduce_sum(numbers), tf.float32) + tf.reduce_sum(like) + total
    return strategy.run(sizes_step, args=(next(iterator),))
outer(iter(strategy.experimental_distribute_dataset(dataset)))
""",
    "a last batch": """
@tf.function
def each(inputs):
    def eager_step(inputs): return tf.reduce_sum(inputs[0])
    return strategy.run(eager_step, args=(inputs,))
@tf.function
def whole(iterator):
    def looping_step(inputs): return tf.reduce_sum(inputs[0])
    for inputs in iterator: strategy.run(looping_step, args=(inputs,))
loose = strategy.experimental_distribute_dataset(dataset.unbatch().take(24).batch(16))
for inputs in loose: each(inputs)
whole(loose)
""",
    "one core without a size": """
@tf.function
def outer():
    def make_step():
        core = tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group)
        return tf.compat.v1.placeholder_with_default(tf.zeros([4]), [None if core == 2 else 4])
    def take_step(value): return tf.reduce_sum(value)
    return strategy.run(take_step, args=(strategy.run(make_step),))
outer()
""",
    "shapes that change": """
@tf.function
def outer(values, factor):
    def sized_step(values): return tf.reduce_sum(values) * factor
    return strategy.run(sized_step, args=(values,))
for size in (4, 4, 3): outer(tf.zeros([size, 2]), 1.0)
for factor in (1.0, 2.0, 3.0, 4.0): outer(tf.zeros([4, 2]), factor)
""",
    "embedding": """
with strategy.scope():
    tf.tpu.experimental.embedding.TPUEmbedding(None, None)
""",
    "parts of a tensor": """
pairs = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=few)
@tf.function
def outer(values):
    def parted_step(values):
        first = pairs.experimental_assign_to_logical_device(values, 1)
        second = pairs.experimental_replicate_to_logical_devices(first * 2)
        return pairs.experimental_split_to_logical_devices(second + 1, [2, 1])
    return pairs.run(parted_step, args=(values,))
print([total.numpy().tolist() for total in pairs.experimental_local_results(outer(tf.constant([[1.0], [2.0]])))])
""",
    "ragged": "strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(tf.ragged.constant([[1], []])))",
}
"""What TensorFlow and a TPU allow, whatever the Keras."""

Results = dict[str, dict[str, Any]]

Run = Callable[[str, int, dict[str, str]], Results]

pytestmark = pytest.mark.timeout(900)
"""TensorFlow traces every step for every core, which takes a busy machine minutes."""


@pytest.fixture(scope="module")
def run(forges: Forges) -> Run:
    """Runs programs one after the other in a process with these devices and this Keras."""

    def run(topology: str, keras: int, programs: dict[str, str]) -> Results:
        done = forges(keras).run(HARNESS.format(programs=json.dumps(programs)), topology)
        assert done.status == 0, done.output[-3000:]
        results: Results = json.loads(done.output.rpartition("RESULTS")[2])
        return results

    return run


@pytest.fixture(scope="module", params=[3, pytest.param(2, marks=pytest.mark.long)], ids=["Keras 3", "Keras 2"])
def results(request: pytest.FixtureRequest, run: Run) -> Results:
    """The result of every program."""
    return run("tpu:4", request.param, PROGRAMS)


@pytest.fixture(scope="module")
def ruled(run: Run) -> Results:
    """The results of programs that keep or break the rules of a TPU."""
    return run("tpu:4", 3, RULES)


def _lines(results: Results, name: str) -> list[str]:
    assert results[name]["error"] == "", name
    printed: str = results[name]["printed"]
    return printed.splitlines()


def test_the_cores_are_listed_once_the_system_is_initialised(results: Results) -> None:
    assert _lines(results, "prelude") == ["4 0"]
    names = [f"/device:TPU:{core}" for core in range(4)]
    assert _lines(results, "strategy") == [f"{names} 1", "[1, 2, 1, 2] (1, 4, 4)", "4 True"]
    assert [notice[:26] for notice in results["strategy"]["notices"]] == ["This TPU is simulated: 4 l"]
    assert _lines(results, "shut down") == ["0"]


def test_a_strategy_before_that_says_what_is_missing(results: Results) -> None:
    assert results["too early"]["error"].startswith("RuntimeError: Cannot find any TPU cores in the system")
    assert "initialize_tpu_system(resolver)" in results["too early"]["error"]


def test_a_training_loop_of_ones_own_learns(results: Results) -> None:
    assert _lines(results, "loop") == ["True", "True True"]
    assert results["loop"]["notices"] == []


def test_the_update_of_four_replicas_is_that_of_one_large_batch(results: Results) -> None:
    assert float(_lines(results, "equivalence")[0]) < 1e-5


def test_fit_with_steps_per_execution_computes_what_one_device_computes(results: Results) -> None:
    learned, apart, evaluated, predicted = _lines(results, "fit")
    assert results["fit"]["notices"] == []  # its batches are all of one size
    assert (learned, predicted) == ("True", "True")
    assert float(apart) < 1e-5
    assert evaluated == "[0.0, 0.0]"


def test_any_name_finds_the_tpu_and_old_names_of_classes_work(ruled: Results) -> None:
    assert _lines(ruled, "names") == [
        " {} {'TPU': 4}",
        " {} {'TPU': 4}",
        "grpc://simulated-tpu:8470 {'worker': ['simulated-tpu:8470']} {'TPU': 4}",
        "grpc://10.0.0.2:8470 {'worker': ['10.0.0.2:8470']} {'TPU': 4}",
        "4",
        "True 4",
        "2",
        "1 4 (4, 1) 1",
        "TPUMirroredVariable",
        "11.0",
    ]
    assert ruled["names"]["notices"][0].startswith("TPU:3 is simulated by TensorFlow's logical device CPU:3")
    assert "TPU:0 to TPU:3" in ruled["no such core"]["error"]


def test_a_size_that_is_unknown_on_any_core_is_found(ruled: Results) -> None:
    assert ruled["one core without a size"]["error"] == ""
    (notice,) = ruled["one core without a size"]["notices"]
    assert notice.startswith("take_step: an input of shape (None,) has a dimension that is unknown")


def test_run_outside_of_a_function_is_refused_as_on_a_tpu(ruled: Results) -> None:
    assert "NotImplementedError" in ruled["eager"]["error"]
    assert "pure eager" in ruled["eager"]["error"]


def test_functions_within_a_step_are_compiled_with_it(ruled: Results) -> None:
    assert _lines(ruled, "a tf.function of its own") == ["True", "(16, 8)"]
    assert "remove jit_compile" in ruled["jit around run"]["error"]


def test_an_optimizer_within_a_function_updates_once(results: Results) -> None:
    assert _lines(results, "an optimizer in a tf.function") == ["0.5"]


def test_python_in_a_step_does_not_compile(ruled: Results) -> None:
    error = ruled["python"]["error"]
    assert error.startswith("InvalidArgumentError: Compilation failure: unsupported operations")
    assert "no registered 'EagerPyFunc' OpKernel for XLA_TPU_JIT" in error
    assert "from python_step:5" in error
    assert "Dataset.map" in error


def test_what_a_tpu_pads_emulates_or_leaves_to_the_host_is_said_once(ruled: Results) -> None:
    assert ruled["rules"]["error"] == ""
    assert [notice[:31] for notice in ruled["rules"]["notices"]] == [
        "loose_step:5: the size of what ",
        "loose_step:6: a TPU cannot run ",
        "loose_step:8: MatMul computes i",
    ]


def test_only_a_size_that_is_computed_in_the_step_is_named(ruled: Results) -> None:
    assert ruled["sizes"]["error"] == ""
    assert [notice.partition(" has an output size")[0] for notice in ruled["sizes"]["notices"]] == [
        "sizes_step:7: StridedSlice (x[a:b])",
        "sizes_step:8: Range (tf.range)",
    ]


def test_text_in_a_step_does_not_compile(ruled: Results) -> None:
    assert "'AsString' OpKernel for XLA_TPU_JIT" in ruled["text"]["error"]
    assert "set_soft_device_placement(True)" in ruled["text"]["error"]


def test_a_smaller_last_batch_is_another_compilation_or_one_of_unknown_size(ruled: Results) -> None:
    assert ruled["a last batch"]["error"] == ""
    each, whole = ruled["a last batch"]["notices"]
    assert "eager_step has now been compiled 2 times: for float32(2, 8), float32(2, 1) after float32(4, 8)" in each
    assert whole.startswith("looping_step: an input of shape (None, 8)")


def test_compilations_are_counted(ruled: Results) -> None:
    first, second = ruled["shapes that change"]["notices"]
    assert "sized_step has now been compiled 2 times: for float32(3, 2) after float32(4, 2)." in first
    assert "sized_step has now been compiled 5 times: for 4.0 after 3.0." in second


def test_ragged_batches_are_refused_as_on_a_tpu(ruled: Results) -> None:
    assert "TPUStrategy does not support" in ruled["ragged"]["error"]


def test_the_embedding_hardware_is_refused_with_the_layer_to_use_instead(ruled: Results) -> None:
    assert ruled["embedding"]["error"].startswith("NotImplementedError: TPUEmbedding needs the embedding hardware")
    assert "tf.keras.layers.Embedding" in ruled["embedding"]["error"]


def test_splitting_a_tensor_over_the_cores_of_a_replica_changes_no_result(ruled: Results) -> None:
    assert _lines(ruled, "parts of a tensor") == ["[[[3.0], [5.0]], [[3.0], [5.0]]]"]


def test_bfloat16_trains(results: Results) -> None:
    assert _lines(results, "bfloat16") == ["True bfloat16"]


def test_without_a_tpu_the_usual_error_says_which_topology_to_choose(run: Run) -> None:
    found = run("gpu:4", 3, {"named": "import tensorflow as tf\n" + PRELUDE})
    assert "Please provide a TPU Name to connect to." in found["named"]["error"]
    assert "Lockstep: this session is gpu:4, which has no TPU. Choose a topology" in found["named"]["error"]


STEP = """
total = tf.function(lambda: strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", 1.0)))()
print(strategy.experimental_local_results(total)[0].numpy())
"""


async def test_a_tpu_in_a_session(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="tpu:8")
    try:
        told = await learner.run("\n".join((PRELUDE, STRATEGY, STEP)))
    finally:
        await learner.leave()
    assert told.outcome is Outcome.ok, told.text
    assert "8 True" in told.stdout
    assert told.stdout.endswith("8.0\n")
    assert [event.code for event in told.events if isinstance(event, NoticeEvent)] == ["tpu-simulated"]
