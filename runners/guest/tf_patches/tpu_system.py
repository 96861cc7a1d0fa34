"""``tpu:N`` without a TPU: N logical CPU devices stand for its N cores, the first for the machine that feeds it, too.

As on a TPU's own machine, the cores are listed as physical devices at once and as logical ones after
``initialize_tpu_system``. Names of devices are translated where TensorFlow takes them.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.tpu import topology_pb2
from tensorflow.python.client import session
from tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver import TPUClusterResolver
from tensorflow.python.eager import context as tf_context
from tensorflow.python.eager import remote
from tensorflow.python.framework import config as tf_config
from tensorflow.python.framework import ops
from tensorflow.python.tpu import tpu_strategy_util, tpu_system_metadata
from tensorflow.python.tpu.topology import Topology
from tensorflow.python.training import server_lib

from runners.guest.reporting import notices
from runners.guest.tf_patches import distributed_datasets, tpu_strategy

ADDRESS = "simulated-tpu:8470"
"""Where a TPU that is named would be; nobody calls there."""

_TPU = re.compile(r"(?<![a-z_])tpu:(\d+)", re.IGNORECASE)
_LOCAL = ("", "local")


class _System:
    """The simulated TPU of this process."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.initialized = False

    @property
    def topology(self) -> Topology:
        """Where the cores lie: two on a chip, the chips in two rows as far as there are enough."""
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
        """The cores as logical devices, none before the system was initialised."""
        return [
            tf_context.LogicalDevice(f"/device:TPU:{core}", "TPU")
            for core in range(self.cores if self.initialized else 0)
        ]

    def metadata(self) -> Any:
        """What a resolver says of the system."""
        cores = self.cores if self.initialized else 0
        names = [("CPU", 0), *(("TPU", core) for core in range(cores))]
        start = tpu_strategy.HOST[:-5]
        devices = tuple(session._DeviceAttributes(f"{start}{kind}:{i}", kind, 0, 0) for kind, i in names)
        topology = self.topology if cores else None
        return tpu_system_metadata.TPUSystemMetadata(cores, int(cores > 0), cores, topology, devices)


def simulate(count: int) -> None:
    """Make TensorFlow in this process see a TPU of ``count`` cores. Call once, before any op ran; runs no op itself."""
    cpus = tf_config.list_physical_devices("CPU")
    tf_config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * count)
    system = _System(count)
    _answer_lists(system)
    _answer_names(system)
    _answer_resolvers(system)
    _answer_systems(system)
    tpu_strategy.replace_tpu_strategy()
    distributed_datasets.disable_autotune()


def explain_absence(topology: str) -> None:
    """Let the errors of programs that look for a TPU say, too, that ``topology`` has none."""
    _explain(f"Lockstep: this session is {topology}, which has no TPU. Choose a topology from tpu:1 to tpu:8.")


def explain_failure(topology: str) -> None:
    """Let the errors of programs that do not reach a real TPU say that it is one, and what its operator can do."""
    _explain(
        f"Lockstep: this session has a real TPU, a {topology}, and TensorFlow does not reach it. "
        "Its operator learns more from 'lockstep doctor --devices'."
    )


def _explain(sentence: str) -> None:
    def explained(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def or_explain(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except Exception as error:
                if sentence not in getattr(error, "__notes__", ()):
                    error.add_note(sentence)
                raise

        return or_explain

    TPUClusterResolver.__init__ = explained(TPUClusterResolver.__init__)
    tpu_strategy_util.initialize_tpu_system_impl = explained(tpu_strategy_util.initialize_tpu_system_impl)


def cpu_stand_in(device: Any, cores: int) -> Any:
    """Turn ``/TPU:1`` into the device that stands for it, ``/CPU:1``; anything else is returned as it is.

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


def _answer_lists(system: _System) -> None:
    cls = tf_context.Context
    list_physical, list_logical = cls.list_physical_devices, cls.list_logical_devices

    @functools.wraps(list_physical)
    def list_physical_devices(self: Any, device_type: str | None = None) -> list[Any]:
        listed: list[Any] = list_physical(self, device_type)
        if device_type not in (None, "TPU") or _is_keras(sys._getframe(2)):
            return listed
        return [*listed, *system.physical()]

    @functools.wraps(list_logical)
    def list_logical_devices(self: Any, device_type: str | None = None) -> list[Any]:
        listed = [device for device in list_logical(self, device_type) if _is_not_a_core(device)]
        return [*listed, *system.logical()] if device_type in (None, "TPU") else listed

    cls.list_physical_devices, cls.list_logical_devices = list_physical_devices, list_logical_devices


def _is_keras(frame: Any) -> bool:
    """Whether Keras asks: it would compile what has no strategy with XLA, which on a CPU takes longer than it saves."""
    asks = str(frame.f_globals.get("__name__"))
    return asks.startswith("keras.src.trainers.")


def _is_not_a_core(device: Any) -> bool:
    return device.device_type != "CPU" or str(device.name).endswith(":0")


def _answer_names(system: _System) -> None:
    device = ops.device

    @functools.wraps(device)
    def device_or_core(device_name_or_function: Any) -> Any:
        name = cpu_stand_in(device_name_or_function, system.cores)
        if name is not device_name_or_function and (named := _TPU.search(str(device_name_or_function))):
            core = int(named[1])
            notices.notify_once("gpu-names", gpu=f"TPU:{core}", device=f"CPU:{core}")
        return device(name)

    ops.device = device_or_core


def _answer_resolvers(system: _System) -> None:
    make = TPUClusterResolver.__init__

    @functools.wraps(make)
    def init(
        self: Any,
        tpu: str | None = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        make(self, "local", zone, project, job_name)
        name = tpu.decode() if isinstance(tpu, bytes) else tpu
        self._tpu = "local" if not name else str(name)

    def master(self: Any, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        if self._tpu in _LOCAL:
            return ""
        return str(self._tpu) if self._tpu.startswith("grpc://") else f"grpc://{ADDRESS}"

    def cluster_spec(self: Any) -> Any:
        where = self.master().removeprefix("grpc://")
        return server_lib.ClusterSpec({self.task_type: [where]} if where else {})

    def num_accelerators(self: Any, *args: Any, **kwargs: Any) -> dict[str, int]:
        return {"TPU": len(system.logical())}

    TPUClusterResolver.__init__ = init
    TPUClusterResolver.master = functools.wraps(TPUClusterResolver.master)(master)
    TPUClusterResolver.cluster_spec = functools.wraps(TPUClusterResolver.cluster_spec)(cluster_spec)
    TPUClusterResolver.num_accelerators = functools.wraps(TPUClusterResolver.num_accelerators)(num_accelerators)
    TPUClusterResolver.get_tpu_system_metadata = lambda self: system.metadata()


def _answer_systems(system: _System) -> None:
    def initialize(resolver: Any, _: Any) -> Any:
        resolver = resolver or TPUClusterResolver("")
        if not tf.executing_eagerly():
            raise RuntimeError("initialize_tpu_system cannot be called inside of a tf.function: call it before")
        name = resolver._tpu
        if name in tpu_strategy_util._INITIALIZED_TPU_SYSTEMS:
            tf.get_logger().warning(
                "TPU system %s has already been initialized: on a TPU, variables made before are lost", name
            )
        system.initialized = True
        proto = topology_pb2.TopologyProto()
        proto.ParseFromString(system.topology.serialized())
        resolver.set_tpu_topology(proto.SerializeToString())
        tpu_strategy_util._INITIALIZED_TPU_SYSTEMS[name] = system.topology
        notices.notify_once("tpu-simulated", count=system.cores)
        return system.topology

    def shut_down(resolver: Any, _: Any) -> None:
        name = resolver._tpu if resolver is not None else "local"
        system.initialized = False
        if tpu_strategy_util._INITIALIZED_TPU_SYSTEMS.pop(name, None) is None:
            tf.get_logger().warning("You are shutting down a TPU system %s that has not been initialized.", name)

    tpu_strategy_util.initialize_tpu_system_impl = initialize
    tpu_strategy_util.shutdown_tpu_system_impl = shut_down
    connect_to_cluster, connect_to_host = remote.connect_to_cluster, remote.connect_to_remote_host

    @functools.wraps(connect_to_cluster)
    def cluster(cluster_spec_or_resolver: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(cluster_spec_or_resolver, TPUClusterResolver):
            connect_to_cluster(cluster_spec_or_resolver, *args, **kwargs)

    @functools.wraps(connect_to_host)
    def host(remote_host: Any = None, *args: Any, **kwargs: Any) -> None:
        if isinstance(remote_host, str) and (remote_host in _LOCAL or ADDRESS in remote_host):
            return
        connect_to_host(remote_host, *args, **kwargs)

    remote.connect_to_cluster, remote.connect_to_remote_host = cluster, host
    for module in (tf.config, tf.compat.v2.config):
        module.experimental_connect_to_cluster, module.experimental_connect_to_host = cluster, host
