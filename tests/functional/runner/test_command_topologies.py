"""``lockstep run --topology …`` on a real runner: the machine that the script sees, and the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories.cli_process import CompletedCommand, lockstep
from tests.factories.real_supervisor import RealSupervisor

WHO = """
import json, os
task = json.loads(os.environ["TF_CONFIG"])["task"]
print("I am", task["type"], task["index"])
"""
REPLICAS = "import tensorflow as tf\nprint(tf.distribute.MirroredStrategy().num_replicas_in_sync, 'replicas')"
TPU = """
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
total = tf.function(lambda: strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", 1.0)))()
print(strategy.experimental_local_results(total)[0].numpy(), "from", strategy.num_replicas_in_sync, "cores")
"""
SERVERS = """
import tensorflow as tf
strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)
add = tf.function(lambda: total.assign_add(2.0))
for _ in range(3):
    coordinator.schedule(add)
coordinator.join()
print(total.numpy(), "on", total.device)
"""
MACHINES = {
    "cpu": (REPLICAS, {"1 replicas"}),
    "gpu:3": (REPLICAS, {"3 replicas"}),
    "tpu:2": (TPU, {"2.0 from 2 cores"}),
    "ps:2+1": (SERVERS, {"[coordinator] 6.0 on /job:ps/replica:0/task:0/device:CPU:0"}),
    "workers:2": (WHO, {"[worker 0] I am worker 0", "[worker 1] I am worker 1"}),
    "workers:2xgpu:2+chief": (WHO + REPLICAS, {"[chief] I am chief 0", "[worker 0] 2 replicas"}),
}


async def ran(node: RealSupervisor, folder: Path, code: str, *options: str) -> CompletedCommand:
    script = folder / "script.py"
    script.write_text(code)
    return await lockstep("run", str(script), *options, within_s=120, runner_socket=node.socket, data_dir=folder)


@pytest.mark.parametrize("topology", MACHINES)
async def test_a_script_sees_its_machine_and_standard_error_says_what_is_simulated(
    node: RealSupervisor, tmp_path: Path, topology: str
) -> None:
    code, wanted = MACHINES[topology]

    ended = await ran(node, tmp_path, code, f"--topology={topology}")

    assert ended.status == 0, ended.err
    assert wanted <= set(ended.out.splitlines())
    assert ended.err.count("simulated. Timings say nothing about real devices.") == (topology != "cpu")


async def test_an_error_in_a_worker_is_1(node: RealSupervisor, tmp_path: Path) -> None:
    ended = await ran(node, tmp_path, WHO + "if task['index'] == 1: raise ValueError('mine')", "--topology=workers:2")

    assert ended.status == 1
    assert "[worker 1] ValueError: mine" in ended.err
