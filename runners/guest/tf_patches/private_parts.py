"""Private parts of TensorFlow, Keras and ipykernel that other modules read or call, without changing them."""

from __future__ import annotations

from runners.guest.tf_patches.registry import Subject

_TESTS = "tests/functional/runner/"
_VISUALIZATIONS = f"{_TESTS}test_visualizations.py::"

tpu_trace = Subject(
    "tpu_trace",
    when="tpu",
    because="whether a TPU could run a step is read from the traced graph",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_tpu.py::test_what_a_tpu_pads_emulates_or_leaves_to_the_host_is_said_once",
)
tpu_trace.needs("tensorflow.python.util.tf_stack:_source_mapper_stacks")
tpu_trace.needs("tensorflow.python.util.tf_stack:_get_thread_key")
tpu_trace.needs(
    "tensorflow.python.framework.func_graph:FuncGraph.__init__",
    relies_on=(".outer_graph", ".structured_input_signature"),
)
tpu_trace.needs("tensorflow.python.framework.ops:Graph._get_function", relies_on=("(self, name)",))

gpu_memory = Subject(
    "gpu_memory",
    when="gpu",
    because="the memory of a simulated GPU is the size of the tensors and variables on its stand-in",
    since="TensorFlow 2.21",
    test="tests/unit/runners/guest/tf_patches/test_gpu.py::test_answers_are_those_of_a_machine_with_gpus",
)
gpu_memory.needs("tensorflow.python.framework.ops:EagerTensor")
gpu_memory.needs("tensorflow.python.ops.resource_variable_ops:BaseResourceVariable.__init__", relies_on=("._handle",))

visualizations = Subject(
    "visualizations",
    when="every process",
    because="pictures show where variables and batches are",
    since="TensorFlow 2.21",
    test=f"{_VISUALIZATIONS}test_placement_shows_where_each_variable_lives",
)
visualizations.needs(
    "tensorflow.python.distribute.sharded_variable:ShardedVariableMixin.variables",
    test="tests/long/runner/test_cluster_training.py::test_each_part_of_a_variable_on_servers_is_named_and_where_it_lives",
)
for _class in ("PerReplica", "DistributedDelegate"):
    visualizations.needs(f"tensorflow.python.distribute.values:{_class}.values")
visualizations.needs(
    "tensorflow.python.distribute.distribute_lib:StrategyBase.__init__", relies_on=("._should_use_with_coordinator",)
)
visualizations.needs(
    "tensorflow.python.distribute.collective_all_reduce_strategy:CollectiveAllReduceExtended._initialize_multi_worker",
    relies_on=("._num_workers",),
    because="Keras 2 sums over the workers metrics that each has already reduced",
    test=f"{_VISUALIZATIONS}test_each_worker_of_a_cluster_tells_its_own_numbers_and_shards",
)
visualizations.needs(
    "keras.src.backend.common.variables:Variable.__init__", relies_on=("._value", ".path"), since="Keras 3.15"
)

stalls = Subject(
    "stall_detector",
    when="workers",
    because="a process that waits for others inside TensorFlow does not notice interrupts",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_clusters.py::test_a_run_stops_while_one_waits_for_another_and_the_session_lives_on",
)
stalls.needs("tensorflow.python.eager.context:Context.abort_collective_ops", relies_on=("(self, code, message)",))

cluster_output = Subject(
    "cluster_output",
    when="workers",
    because="displays of another process of a cluster go to the session's kernel",
    since="ipykernel 7.4",
    test=f"{_TESTS}test_clusters.py::test_every_worker_runs_the_cell_in_its_lane_and_in_order",
)
for _class in ("displayhook:ZMQShellDisplayHook", "zmqshell:ZMQDisplayPublisher"):
    for _name in ("session", "pub_socket"):
        cluster_output.needs(f"ipykernel.{_class}.{_name}")
