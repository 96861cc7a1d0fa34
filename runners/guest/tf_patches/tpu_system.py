"""``tpu:N`` without a TPU: N logical CPU devices simulate its N cores, and the first also for the host.

As on a TPU VM, the cores are listed as physical devices from the start, and as logical ones after
``initialize_tpu_system``. Names of devices are translated where TensorFlow takes them.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.tpu import topology_pb2
from tensorflow.python.client import session
from tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver import TPUClusterResolver
from tensorflow.python.eager import context as tf_context
from tensorflow.python.framework import config as tf_config
from tensorflow.python.tpu import tpu_strategy_util, tpu_system_metadata
from tensorflow.python.tpu.topology import Topology
from tensorflow.python.training import server_lib

from runners.guest.reporting import notices
from runners.guest.tf_patches import distributed_datasets, tpu_strategy
from runners.guest.tf_patches.registry import Subject

ADDRESS = "simulated-tpu:8470"
"""The address of a TPU that has a name; nothing listens there."""

_TESTS = "tests/functional/runner/test_tpu.py::"
_RESOLVER = "tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver:"
_SYSTEMS = "tensorflow.python.tpu.tpu_strategy_util:"
_TPU = re.compile(r"(?<![a-z_])tpu:(\d+)", re.IGNORECASE)
_LOCAL = ("", "local")

subject = Subject(
    __name__,
    when="tpu",
    because="there is no TPU: logical CPU devices simulate its cores",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_any_name_finds_the_tpu_and_old_names_of_classes_work",
    essential=True,
)


def simulate(count: int) -> None:
    """Make TensorFlow in this process see a TPU of ``count`` cores. Call once, before any op runs; runs no op."""
    cpus = tf_config.list_physical_devices("CPU")
    tf_config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * count)
    subject.apply(_System(count))
    tpu_strategy.subject.apply()
    distributed_datasets.tuning.apply()


def cpu_stand_in(device: Any, cores: int) -> Any:
    """Turn ``/TPU:1`` into the device that simulates it, ``/CPU:1``; anything else is returned as it is.

    Raises:
        tf.errors.InvalidArgumentError: the TPU has fewer cores.
    """
    if isinstance(device, tf_context.LogicalDevice):
        device = device.name
    elif isinstance(device, tf.DeviceSpec):
        device = device.to_string()
    if not isinstance(device, str):
        return device

    def stand_in(match: re.Match[str]) -> str:
        if (core := int(match[1])) >= cores:
            message = f"unknown device {device}: the cores of this TPU are TPU:0 to TPU:{cores - 1}"
            raise tf.errors.InvalidArgumentError(None, None, message)
        return f"CPU:{core}"

    return _TPU.sub(stand_in, device)


class _System:
    """The simulated TPU of this process."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.initialized = False

    @property
    def topology(self) -> Topology:
        """The arrangement of the cores: two on a chip, and the chips in two rows if there are enough."""
        per_chip = 2 if self.cores % 2 == 0 else 1
        chips = self.cores // per_chip
        rows = 2 if chips % 2 == 0 else 1
        mesh = [chips // rows, rows, 1, per_chip]
        where = [[(c // per_chip) // rows, (c // per_chip) % rows, 0, c % per_chip] for c in range(self.cores)]
        return Topology(mesh_shape=mesh, device_coordinates=[where])

    def physical(self) -> list[Any]:
        """The cores as physical devices."""
        return [tf_context.PhysicalDevice(f"/physical_device:TPU:{core}", "TPU") for core in range(self.cores)]

    def logical(self) -> list[Any]:
        """The cores as logical devices; empty before the system is initialized."""
        return [
            tf_context.LogicalDevice(f"/device:TPU:{core}", "TPU")
            for core in range(self.cores if self.initialized else 0)
        ]

    def metadata(self) -> Any:
        """The system's metadata, as a resolver reports it."""
        cores = self.cores if self.initialized else 0
        names = [("CPU", 0), *(("TPU", core) for core in range(cores))]
        start = tpu_strategy.HOST[:-5]
        devices = tuple(session._DeviceAttributes(f"{start}{kind}:{i}", kind, 0, 0) for kind, i in names)
        topology = self.topology if cores else None
        return tpu_system_metadata.TPUSystemMetadata(cores, int(cores > 0), cores, topology, devices)


subject.needs(
    "tensorflow.python.client.session:_DeviceAttributes.__init__",
    relies_on=("(self, name, device_type, memory_limit_bytes, incarnation)",),
)
subject.needs(
    "tensorflow.python.tpu.tpu_system_metadata:TPUSystemMetadata.__new__",
    relies_on=("(cls, num_cores, num_hosts, num_of_cores_per_host, topology, devices)",),
)


# --- lists and names of devices -----------------------------------------------------------------------------------


@subject.patch(
    "tensorflow.python.eager.context:Context.list_physical_devices",
    relies_on=("(self, device_type)",),
    test=f"{_TESTS}test_the_cores_are_listed_once_the_system_is_initialised",
)
def _list_physical(system: _System, original: Any, context: Any, device_type: str | None = None) -> list[Any]:
    listed: list[Any] = original(context, device_type)
    if device_type not in (None, "TPU") or _is_keras(sys._getframe(3)):  # see gpu_lists
        return listed
    return [*listed, *system.physical()]


@subject.patch(
    "tensorflow.python.eager.context:Context.list_logical_devices",
    relies_on=("(self, device_type)",),
    test=f"{_TESTS}test_the_cores_are_listed_once_the_system_is_initialised",
)
def _list_logical(system: _System, original: Any, context: Any, device_type: str | None = None) -> list[Any]:
    listed = [device for device in original(context, device_type) if _is_not_a_core(device)]
    return [*listed, *system.logical()] if device_type in (None, "TPU") else listed


def _is_keras(frame: Any) -> bool:
    """Whether the caller is Keras, which would compile models without a strategy with XLA: too slow on a CPU."""
    return str(frame.f_globals.get("__name__")).startswith("keras.src.trainers.")


def _is_not_a_core(device: Any) -> bool:
    return device.device_type != "CPU" or str(device.name).endswith(":0")


@subject.patch(
    "tensorflow.python.framework.ops:device",
    relies_on=("(device_name_or_function)",),
    used_by=("tensorflow.python.framework.ops:device_v2",),
)
def _enter_device(system: _System, original: Any, device_name_or_function: Any) -> Any:
    name = cpu_stand_in(device_name_or_function, system.cores)
    if name is not device_name_or_function and (named := _TPU.search(str(device_name_or_function))):
        core = int(named[1])
        notices.notify_once("gpu-names", gpu=f"TPU:{core}", device=f"CPU:{core}")
    return original(name)


# --- TPUClusterResolver -------------------------------------------------------------------------------------------


@subject.patch(
    f"{_RESOLVER}TPUClusterResolver.__init__", relies_on=("(self, tpu, zone, project, job_name, ...)", "._tpu")
)
def _make_resolver(
    _: _System,
    original: Any,
    self: Any,
    tpu: str | None = None,
    zone: str | None = None,
    project: str | None = None,
    job_name: str = "worker",
    *args: Any,
    **kwargs: Any,
) -> None:
    original(self, "local", zone, project, job_name)
    name = tpu.decode() if isinstance(tpu, bytes) else tpu
    self._tpu = "local" if not name else str(name)


@subject.patch(f"{_RESOLVER}TPUClusterResolver.master", relies_on=("(self, task_type, task_id, rpc_layer)",))
def _master(_: _System, __: Any, self: Any, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
    if self._tpu in _LOCAL:
        return ""
    return str(self._tpu) if self._tpu.startswith("grpc://") else f"grpc://{ADDRESS}"


@subject.patch(f"{_RESOLVER}TPUClusterResolver.cluster_spec", relies_on=("(self)", ".task_type"))
def _cluster_spec(_: _System, __: Any, self: Any) -> Any:
    where = self.master().removeprefix("grpc://")
    return server_lib.ClusterSpec({self.task_type: [where]} if where else {})


@subject.patch(f"{_RESOLVER}TPUClusterResolver.num_accelerators")
def _num_accelerators(system: _System, _: Any, self: Any, *args: Any, **kwargs: Any) -> dict[str, int]:
    return {"TPU": len(system.logical())}


@subject.patch(f"{_RESOLVER}TPUClusterResolver.get_tpu_system_metadata", relies_on=("(self)",))
def _get_metadata(system: _System, _: Any, self: Any) -> Any:
    return system.metadata()


# --- the system itself --------------------------------------------------------------------------------------------


@subject.patch(
    f"{_SYSTEMS}initialize_tpu_system_impl",
    relies_on=(
        "(cluster_resolver, tpu_cluster_resolver_cls)",
        "._INITIALIZED_TPU_SYSTEMS",
        f"{_RESOLVER}TPUClusterResolver.set_tpu_topology",
    ),
    used_by=(f"{_RESOLVER}initialize_tpu_system", f"{_RESOLVER}TPUClusterResolver.connect"),
    test=f"{_TESTS}test_the_cores_are_listed_once_the_system_is_initialised",
)
def _initialize(system: _System, __: Any, resolver: Any, ___: Any) -> Any:
    resolver = resolver or TPUClusterResolver("")
    if not tf.executing_eagerly():
        raise RuntimeError("initialize_tpu_system cannot be called inside a tf.function: call it outside")
    name = resolver._tpu
    if name in tpu_strategy_util._INITIALIZED_TPU_SYSTEMS:
        tf.get_logger().warning(
            "TPU system %s has already been initialized: on a TPU, existing variables are lost", name
        )
    system.initialized = True
    proto = topology_pb2.TopologyProto()
    proto.ParseFromString(system.topology.serialized())
    resolver.set_tpu_topology(proto.SerializeToString())
    tpu_strategy_util._INITIALIZED_TPU_SYSTEMS[name] = system.topology
    notices.notify_once("tpu-simulated", count=system.cores)
    return system.topology


@subject.patch(
    f"{_SYSTEMS}shutdown_tpu_system_impl",
    relies_on=("(cluster_resolver, tpu_cluster_resolver_cls)", "._INITIALIZED_TPU_SYSTEMS"),
    used_by=(f"{_RESOLVER}shutdown_tpu_system",),
    test=f"{_TESTS}test_the_cores_are_listed_once_the_system_is_initialised",
)
def _shut_down(system: _System, __: Any, resolver: Any, ___: Any) -> None:
    name = resolver._tpu if resolver is not None else "local"
    system.initialized = False
    if tpu_strategy_util._INITIALIZED_TPU_SYSTEMS.pop(name, None) is None:
        tf.get_logger().warning("You are shutting down a TPU system %s that has not been initialized.", name)


@subject.patch(
    "tensorflow.python.eager.remote:connect_to_cluster",
    relies_on=("(cluster_spec_or_resolver, ...)",),
    also=(
        "tensorflow:config.experimental_connect_to_cluster",
        "tensorflow:compat.v2.config.experimental_connect_to_cluster",
    ),
)
def _connect_to_cluster(_: _System, original: Any, cluster_spec_or_resolver: Any, *args: Any, **kwargs: Any) -> None:
    if not isinstance(cluster_spec_or_resolver, TPUClusterResolver):
        original(cluster_spec_or_resolver, *args, **kwargs)


@subject.patch(
    "tensorflow.python.eager.remote:connect_to_remote_host",
    relies_on=("(remote_host, ...)",),
    also=("tensorflow:config.experimental_connect_to_host", "tensorflow:compat.v2.config.experimental_connect_to_host"),
)
def _connect_to_host(_: _System, original: Any, remote_host: Any = None, *args: Any, **kwargs: Any) -> None:
    if isinstance(remote_host, str) and (remote_host in _LOCAL or ADDRESS in remote_host):
        return
    original(remote_host, *args, **kwargs)
