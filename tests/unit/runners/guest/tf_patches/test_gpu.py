"""TensorFlow and both versions of Keras with simulated GPUs, each program in its own process."""

from __future__ import annotations

import pytest

from tests.factories.http_server import free_port
from tests.factories.tensorflow_forks import Forges, TensorFlowForkServer

pytestmark = pytest.mark.slow


@pytest.fixture
def forge(forges: Forges) -> TensorFlowForkServer:
    """For programs without Keras."""
    return forges(3)


def run(forge: TensorFlowForkServer, code: str, topology: str = "gpu:4", **environment: str) -> str:
    """Run a program that must succeed; returns its output."""
    ran = forge.run("import tensorflow as tf\n" + code, topology, **environment)
    assert ran.status == 0, ran.output[-4000:]
    return ran.output


LISTS = """
gpus = tf.config.list_physical_devices("GPU")
assert [g.name for g in gpus] == [f"/physical_device:GPU:{i}" for i in range(4)], gpus
assert tf.config.experimental.list_physical_devices("GPU") == gpus == tf.config.get_visible_devices("GPU")
assert [d.device_type for d in tf.config.list_physical_devices()] == ["CPU", *["GPU"] * 4]
details = tf.config.experimental.get_device_details(gpus[3])
assert details == {"device_name": "Lockstep simulated GPU"}, details
assert tf.config.experimental.get_device_details(tf.config.list_physical_devices("CPU")[0]) == {}

tf.config.set_visible_devices(gpus[1:3], "GPU")
assert tf.config.experimental.get_memory_growth(gpus[1]) is None
for gpu in gpus[1:3]:
    tf.config.experimental.set_memory_growth(gpu, True)
assert tf.config.experimental.get_memory_growth(gpus[1]) is True

assert [d.name for d in tf.config.list_logical_devices()] == ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
assert [d.name for d in tf.config.list_logical_devices("GPU")] == ["/device:GPU:0", "/device:GPU:1"]
assert tf.distribute.MirroredStrategy().num_replicas_in_sync == 2
split = [tf.config.LogicalDeviceConfiguration(memory_limit=100)] * 2
for what, change in {
    "Visible": lambda: tf.config.set_visible_devices(gpus, "GPU"),
    "Physical": lambda: tf.config.experimental.set_memory_growth(gpus[0], True),
    "Virtual": lambda: tf.config.set_logical_device_configuration(gpus[0], split),
}.items():
    try:
        change()
    except RuntimeError as e:
        assert str(e) == f"{what} devices cannot be modified after being initialized"
    else:
        raise AssertionError(what)
"""

SPLIT = """
gpus = tf.config.list_physical_devices("GPU")
try:
    tf.config.set_logical_device_configuration(gpus[0], [tf.config.LogicalDeviceConfiguration()])
except ValueError as e:
    assert str(e) == "Setting memory limit is required for GPU virtual devices"
else:
    raise AssertionError
half = tf.config.experimental.VirtualDeviceConfiguration(memory_limit=1024)
tf.config.experimental.set_virtual_device_configuration(gpus[0], [half, half])
assert tf.config.get_logical_device_configuration(gpus[0]) == [half, half]
assert tf.config.get_logical_device_configuration(gpus[1]) is None
assert len(tf.config.list_logical_devices("GPU")) == 5
strategy = tf.distribute.MirroredStrategy()
assert strategy.num_replicas_in_sync == 5
with tf.device("/gpu:4"):
    assert (tf.constant(1.0) + 1).device.endswith("CPU:4")
"""

NO_GPUS = """
tf.config.set_visible_devices([], "GPU")
assert tf.config.list_logical_devices("GPU") == []
assert tf.distribute.MirroredStrategy().extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)
with tf.device("/gpu:0"):
    assert tf.constant(1.0).device.endswith("CPU:0")
tf.config.set_soft_device_placement(False)
try:
    with tf.device("/gpu:0"):
        tf.constant(1.0) + 1
except tf.errors.InvalidArgumentError as e:
    assert "/device:GPU:0" in str(e)
else:
    raise AssertionError
"""

UNEQUAL_GROWTH = """
gpus = tf.config.list_physical_devices("GPU")
tf.config.experimental.set_memory_growth(gpus[0], True)
try:
    tf.constant(1.0)
except ValueError as e:
    assert str(e) == "Memory growth cannot differ between GPU devices"
else:
    raise AssertionError
"""

NAMES = """
import numpy as np
LONG = "/job:localhost/replica:0/task:0/device:GPU:1"
for name in ("/gpu:1", "/GPU:1", "gpu:1", "GPU:1", "/device:GPU:1", "/device:gpu:1", LONG,
             tf.config.list_logical_devices("GPU")[1], tf.DeviceSpec(device_type="GPU", device_index=1)):
    with tf.device(name):
        value = tf.random.uniform([2, 2]) @ tf.ones([2, 2])
        variable = tf.Variable(1.0)
    assert value.device == variable.device == LONG.replace("GPU", "CPU"), (name, value.device)

@tf.function
def graph(x):
    with tf.device("/gpu:1"):
        a = x * 2
    with tf.device(tf.DeviceSpec(device_type="GPU", device_index=2)):
        b = x * 3
    return a, b, a.op.device, b.op.device

a, b, on_a, on_b = graph(tf.constant(2.0))
assert (float(a), float(b)) == (4.0, 6.0)
assert on_a.numpy().endswith(b"CPU:1") and on_b.numpy().endswith(b"CPU:2"), (on_a, on_b)
assert tf.constant(1.0).gpu(3).device.endswith("CPU:3")

tf.config.set_soft_device_placement(False)
with tf.device("/gpu:3"):
    assert tf.sqrt(4.0).numpy() == 2.0
for name in ("/gpu:4", "/device:GPU:9"):
    try:
        with tf.device(name):
            tf.constant(1.0) + 1
    except tf.errors.InvalidArgumentError as e:
        assert f"device:GPU:{name[-1]}" in str(e), e
    else:
        raise AssertionError(name)
"""

STRATEGIES = """
def devices(strategy):
    return [d[-5:] for d in strategy.extended.worker_devices]

assert devices(tf.distribute.MirroredStrategy()) == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
assert devices(tf.distribute.MirroredStrategy(["/gpu:1", "GPU:3"])) == ["CPU:1", "CPU:3"]
assert devices(tf.distribute.MirroredStrategy(devices=tf.config.list_logical_devices("GPU")[:2])) == ["CPU:0", "CPU:1"]
assert devices(tf.distribute.experimental.CentralStorageStrategy()) == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
assert devices(tf.distribute.MultiWorkerMirroredStrategy()) == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]

one = tf.distribute.OneDeviceStrategy("/gpu:2")
assert devices(one) == ["CPU:2"]
with one.scope():
    assert tf.Variable(1.0).device.endswith("CPU:2")

central = tf.distribute.experimental.CentralStorageStrategy(
    compute_devices=["/gpu:2", "/gpu:3"], parameter_device="/gpu:1")
with central.scope():
    variable = tf.Variable(1.0)
assert variable.device.endswith("CPU:1"), variable.device
assert devices(central) == ["CPU:2", "CPU:3"]

mirrored = tf.distribute.MirroredStrategy(["/gpu:1", "/gpu:3"])
assert tf.distribute.get_strategy() is not mirrored
with mirrored.scope():
    assert tf.distribute.get_strategy() is mirrored
    variable = tf.Variable(1.0)
assert [v.device[-5:] for v in variable.values] == ["CPU:1", "CPU:3"]

@tf.function
def step():
    context = tf.distribute.get_replica_context()
    with tf.device("/gpu:2"):
        elsewhere = tf.constant(1.0) + 1
    return context.all_reduce("sum", variable * float(context.replica_id_in_sync_group + 1)), elsewhere

summed, elsewhere = mirrored.run(step)
assert [float(v) for v in mirrored.experimental_local_results(summed)] == [3.0, 3.0]
assert [float(v) for v in mirrored.experimental_local_results(elsewhere)] == [2.0, 2.0]
assert tf.distribute.cluster_resolver.TFConfigClusterResolver().num_accelerators() == {"GPU": 4}
"""

QUESTIONS = """
import os, shutil
from tensorflow.python.client import device_lib
assert tf.test.is_gpu_available()
assert tf.test.is_gpu_available(cuda_only=True)
assert not tf.test.is_gpu_available(min_cuda_compute_capability=(3, 0))
assert tf.test.gpu_device_name() == "/device:GPU:0"
assert tf.test.is_built_with_cuda() and tf.test.is_built_with_gpu_support()
local = device_lib.list_local_devices()
assert [d.name for d in local if d.device_type == "GPU"] == [f"/device:GPU:{i}" for i in range(4)]
assert all("simulated" in d.physical_device_desc for d in local if d.device_type == "GPU")
assert os.environ["LOCKSTEP_GPUS"] == "4"
"""

CUDA_VISIBLE_DEVICES = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "2,0"
assert len(tf.config.list_physical_devices("GPU")) == 2
assert tf.distribute.MirroredStrategy().num_replicas_in_sync == 2
"""

MEMORY = """
memory = tf.config.experimental
def current(gpu):
    return memory.get_memory_info(gpu)["current"]

before = [current(f"GPU:{i}") for i in range(4)]
with tf.device("/gpu:1"):
    tensor = tf.zeros([256, 1024])
    variable = tf.Variable(tf.zeros([512, 1024], tf.float64))
assert current("GPU:1") - before[1] == 256 * 1024 * 4 + 512 * 1024 * 8
assert [current(f"GPU:{i}") for i in (2, 3)] == before[2:]
del tensor
peak = 256 * 1024 * 4 + 512 * 1024 * 8
assert memory.get_memory_info("/device:GPU:1") == {"current": before[1] + 512 * 1024 * 8, "peak": before[1] + peak}
assert memory.get_memory_usage("GPU:1") == before[1] + 512 * 1024 * 8
memory.reset_memory_stats("GPU:1")
assert memory.get_memory_info("GPU:1")["peak"] == before[1] + 512 * 1024 * 8

strategy = tf.distribute.MirroredStrategy(["/gpu:2", "/gpu:3"])
with strategy.scope():
    mirrored = tf.Variable(tf.zeros([1024]))
assert [current(f"GPU:{i}") - before[i] for i in (2, 3)] == [4096 + 4] * 2  # 4 is the strategy's own
for wrong, why in {"GPU:4": "No matching devices found", "GPU": "Failed parsing"}.items():
    for ask in (memory.get_memory_info, memory.reset_memory_stats):
        try:
            ask(wrong)
        except ValueError as e:
            assert why in str(e), e
        else:
            raise AssertionError(wrong)
"""

ALL_REDUCES = """
import numpy as np
nccl = tf.distribute.NcclAllReduce
ops = [nccl(), tf.distribute.HierarchicalCopyAllReduce(), tf.distribute.ReductionToOneDevice(), None]
values = []
for op in ops:
    strategy = tf.distribute.MirroredStrategy(cross_device_ops=op)
    with strategy.scope():
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.linspace(-1, 1, 96, dtype="float32").reshape(32, 3)
    model.fit(x, x.sum(1, keepdims=True), batch_size=32, epochs=1, shuffle=False, verbose=0)
    values.append(np.concatenate([w.ravel() for w in model.get_weights()]))

    @tf.function
    def step():
        context = tf.distribute.get_replica_context()
        mine = tf.fill([5], float(context.replica_id_in_sync_group))
        return context.all_reduce("sum", [mine, mine * 2])

    for total in strategy.experimental_local_results(strategy.run(step)):
        assert np.allclose(total[0], 1.0) and np.allclose(total[1], 2.0), total
assert all(np.allclose(v, values[0], rtol=1e-5) for v in values), values
"""

COMMUNICATION = """
import numpy as np
Options, How = tf.distribute.experimental.CommunicationOptions, tf.distribute.experimental.CommunicationImplementation
assert tf.distribute.experimental.CollectiveCommunication is How
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=Options(implementation=How.HOW))
assert strategy.num_replicas_in_sync == 2
with strategy.scope():
    variable = tf.Variable(1.0)

@tf.function
def step():
    replica = tf.distribute.get_replica_context()
    total = replica.all_reduce("sum", tf.fill([3], float(replica.replica_id_in_sync_group + 1)))
    variable.assign_add(total[0])
    return total

for total in strategy.experimental_local_results(strategy.run(step)):
    assert np.allclose(total, 3.0)
assert [float(v) for v in strategy.experimental_local_results(variable)] == [4.0, 4.0]
"""

KERNELS = """
import numpy as np
layers = tf.keras.layers
x = np.random.rand(8, 5, 3).astype("float32")
assert layers.LSTM(4)(x).shape == layers.GRU(4)(x).shape == (8, 4)
with tf.device("/gpu:1"):
    layers.LSTM(4)(x)
images = np.random.rand(4, 3, 8, 8).astype("float32")
CHANNELS_FIRST
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((5, 3)), layers.LSTM(4), layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(), "mse")
model.fit(x, x[:, 0, :1], batch_size=8, verbose=0)
alone = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(1)])
alone.compile(tf.keras.optimizers.Adam(), "mse")
alone.fit(x[:, 0], x[:, 0, :1], verbose=0)
assert not alone.jit_compile and not alone.optimizer.get_config().get("jit_compile")
"""

DATA = """
for transformation in (
    tf.data.experimental.prefetch_to_device("/gpu:1"), tf.data.experimental.copy_to_device("/gpu:1")):
    data = tf.data.Dataset.range(4).map(lambda v: tf.cast(v, tf.float32)).batch(2).apply(transformation)
    elements = list(data)
    assert [e.numpy().tolist() for e in elements] == [[0.0, 1.0], [2.0, 3.0]]
    assert elements[0].device.endswith("CPU:1"), elements[0].device
"""


PROGRAMS = {
    "lists": LISTS,
    "split GPUs": SPLIT,
    "no visible GPUs": NO_GPUS,
    "unequal growth": UNEQUAL_GROWTH,
    "names": NAMES,
    "strategies": STRATEGIES,
    "questions": QUESTIONS,
    "CUDA_VISIBLE_DEVICES": CUDA_VISIBLE_DEVICES,
    "memory": MEMORY,
    "data": DATA,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_are_those_of_a_machine_with_gpus(forge: TensorFlowForkServer, name: str) -> None:
    run(forge, PROGRAMS[name])


MESHES = """
from tensorflow.experimental import dtensor
names = [f"GPU:{i}" for i in range(4)]
assert dtensor.num_local_devices("gpu") == len(dtensor.local_devices("GPU")) == 4
for asked in (
    {"device_type": "GPU"},
    {"devices": names},
    {"devices": names, "device_type": "GPU"},
    {"devices": dtensor.local_devices("GPU"), "device_type": "GPU"},
):
    mesh = dtensor.create_mesh([("batch", 2), ("model", 2)], **asked)
    assert [name[-5:] for name in mesh.local_devices()] == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"], asked
two = dtensor.create_mesh([("batch", 2)], devices=["GPU:3", "GPU:1"])
assert [name[-5:] for name in two.local_devices()] == ["CPU:3", "CPU:1"]
for asked in ({"devices": ["CPU:0"], "device_type": "GPU"}, {"devices": names, "device_type": "CPU"}):
    try:
        dtensor.create_mesh([("batch", len(asked["devices"]))], **asked)
    except ValueError as refused:
        assert "Conflicting devices" in str(refused)
    else:
        raise AssertionError(asked)
assert dtensor.initialize_accelerator_system("GPU") == "GPU"
mesh = dtensor.create_distributed_mesh([("batch", 2), ("model", 2)], device_type="GPU")
whole = dtensor.copy_to_mesh(tf.reshape(tf.range(8.0), (4, 2)), dtensor.Layout.replicated(mesh, 2))
cut = dtensor.relayout(whole, dtensor.Layout(["batch", "model"], mesh))
assert [piece.numpy().tolist() for piece in dtensor.unpack(cut)] == [[[0], [2]], [[1], [3]], [[4], [6]], [[5], [7]]]
assert tf.reduce_sum(cut).numpy() == 28
"""


def test_dtensor_makes_meshes_of_gpus(forge: TensorFlowForkServer) -> None:
    run(forge, MESHES)


@pytest.mark.parametrize("how", ["AUTO", "NCCL", pytest.param("RING", marks=pytest.mark.long)])
def test_workers_reduce_over_all_their_gpus_whatever_communication_is_asked_for(
    forge: TensorFlowForkServer, how: str
) -> None:
    config = f'{{"cluster": {{"worker": ["127.0.0.1:{free_port()}"]}}, "task": {{"type": "worker", "index": 0}}}}'
    alone = run(forge, COMMUNICATION.replace("HOW", how), "gpu:2")
    in_a_cluster = run(forge, COMMUNICATION.replace("HOW", how), "gpu:2", TF_CONFIG=config)
    assert ("NCCL needs real GPUs." in alone) == ("NCCL needs real GPUs." in in_a_cluster) == (how == "NCCL")


@pytest.mark.parametrize("keras", [3, pytest.param(2, marks=pytest.mark.long)])
def test_every_all_reduce_gives_the_same_sums_and_nccl_says_once_what_it_is(forges: Forges, keras: int) -> None:
    said = run(forges(keras), ALL_REDUCES, "gpu:2")
    assert said.count("NCCL needs real GPUs.") == 1


HIERARCHY = """
strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())

@tf.function
def step():
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce("sum", [tf.cast(replica.replica_id_in_sync_group, tf.float32)] * 2)

print([float(total[0]) for total in strategy.experimental_local_results(strategy.run(step))])
"""


def test_what_a_hierarchical_copy_leaves_out_is_said(forge: TensorFlowForkServer) -> None:
    odd, even = run(forge, HIERARCHY, "gpu:3"), run(forge, HIERARCHY, "gpu:4")
    assert "[1.0, 1.0, 1.0]" in odd  # 0 + 1, and not 2
    assert odd.count("With 3, it leaves one replica's gradients out of the sum") == 1
    assert even == "[6.0, 6.0, 6.0, 6.0]\n"


@pytest.mark.parametrize("keras", [3, pytest.param(2, marks=pytest.mark.long)])
def test_keras_takes_kernels_that_the_cpu_has(forges: Forges, keras: int) -> None:
    first = 'layers.Conv2D(2, 3, data_format="channels_first")(images)' if keras == 3 else ""
    run(forges(keras), KERNELS.replace("CHANNELS_FIRST", first), "gpu:2")


def test_what_is_simulated_is_said_once_where_a_learner_could_take_it_for_real(forge: TensorFlowForkServer) -> None:
    said = run(forge, 2 * 'with tf.device("/gpu:1"):\n    tf.constant(1.0)\n')
    assert said.count("GPU:1 is simulated by TensorFlow's logical device CPU:1") == 1
    said = run(forge, 'tf.config.experimental.get_memory_info("GPU:1")\n' * 2)
    assert said.count("GPU:1 is simulated and has no memory of its own") == 1
    assert run(forge, SPLIT).count("limits are recorded") == 1


def test_nothing_is_said_of_a_name_that_is_no_gpu_of_this_machine(forge: TensorFlowForkServer) -> None:
    assert run(forge, 'with tf.device("/cpu:0"):\n    tf.constant(1.0)\n') == ""
    assert run(forge, "tf.distribute.MirroredStrategy()") == ""


def test_placements_are_printed_where_they_are_asked_for(forge: TensorFlowForkServer) -> None:
    code = """
@tf.function
def twice(x):
    with tf.device("/gpu:2"):
        return x * 2

tf.debugging.set_log_device_placement(True)
with tf.device("/gpu:1"):
    twice(tf.sqrt(4.0))
tf.debugging.set_log_device_placement(False)
tf.exp(1.0)
"""
    said = run(forge, code)
    assert "op Sqrt in device /job:localhost/replica:0/task:0/device:CPU:1\n" in said
    assert "mul: (Mul): /job:localhost/replica:0/task:0/device:CPU:2" in said, said
    assert "op Exp" not in said


FEEDS = """
from tensorflow.python.data.ops import multi_device_iterator_ops

tuned = []
make = multi_device_iterator_ops._create_device_dataset

def noted(*args):
    made = make(*args)
    tuned.append(made.options().autotune.enabled)
    return made

multi_device_iterator_ops._create_device_dataset = noted
strategy = tf.distribute.MirroredStrategy()
shares = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
print(tuned, [[int(n) for part in strategy.experimental_local_results(share) for n in part] for share in shares])
"""


@pytest.mark.parametrize("topology", ["gpu:2", "tpu:2"])
def test_no_thread_tunes_what_only_hands_over_to_a_device(forge: TensorFlowForkServer, topology: str) -> None:
    connect = "tf.tpu.experimental.initialize_tpu_system()\n" if topology == "tpu:2" else ""
    code = FEEDS.replace("MirroredStrategy", "TPUStrategy") if connect else FEEDS
    said = run(forge, connect + code, topology)
    assert "False" in said
    assert "True" not in said
    assert "[[0, 1, 2, 3], [4, 5, 6, 7]]" in said


DROPPED = """
import ctypes, gc, time
assert ctypes.CDLL(None).mallopt(-6, 165)  # M_PERTURB: what is freed is overwritten at once
options = tf.data.Options()
options.experimental_optimization.apply_default_optimizations = False  # as Keras 3 has it for arrays

def slowly(x):
    time.sleep(0.01)
    return x

for _ in range(8):
    data = tf.data.Dataset.range(8).map(lambda x: tf.numpy_function(slowly, [x], tf.int64)).with_options(options)
    parts = iter(strategy.experimental_distribute_dataset(data.batch(2)))
    print([int(part[0]) for part in strategy.experimental_local_results(next(parts))])
    del data
    gc.collect()
    del parts  # while the next element is made
print("alive")
"""


TWO_REPLICAS = {
    "gpu:2": "strategy = tf.distribute.MirroredStrategy()",
    "tpu:2": "tf.tpu.experimental.initialize_tpu_system()\nstrategy = tf.distribute.TPUStrategy()",
    "cpu": """
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
""",
}


@pytest.mark.parametrize("topology", ["gpu:2", "cpu", pytest.param("tpu:2", marks=pytest.mark.long)])
def test_an_iterator_may_be_dropped_while_it_makes_an_element(forge: TensorFlowForkServer, topology: str) -> None:
    """TensorFlow alone would read freed memory here, and crash."""
    said = run(forge, TWO_REPLICAS[topology] + DROPPED, topology)
    assert said.split("\n")[-10:-1] == ["[0, 1]"] * 8 + ["alive"], said


def test_without_simulated_gpus_tensorflow_is_as_it_was(forge: TensorFlowForkServer) -> None:
    said = run(forge, 'import os\nassert not tf.config.list_physical_devices("GPU")\nprint(os.environ["PATH"])', "cpu")
    assert "lockstep" not in said
