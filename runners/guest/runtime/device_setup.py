"""Makes TensorFlow in a new process see the machine that a topology names."""

from __future__ import annotations

from runners.guest.accelerators import real_devices
from runners.guest.cluster import task_context
from runners.guest.tf_patches import collectives, gpu, nccl, shared_gpus, tpu_errors, tpu_system
from runners.wire.topology import Topology


def set_up_devices(topology: Topology) -> None:
    """Make this process see ``topology``. Call once, before any op runs; runs no op itself."""
    if own := task_context.current_context():
        collectives.separate_collective_keys(own.number, len(topology.tasks))
    if (shares := real_devices.granted_gpus()) is not None:
        if topology.kind == "tpu":
            tpu_errors.explain_failure(str(topology))
        else:
            limited = real_devices.configure_gpus(shares)
            if limited:
                shared_gpus.allow_growth(limited)
            if any(logical > 1 for logical, _ in shares):
                nccl.replace("nccl-logical")
        return
    match topology.kind:
        case "gpu" | "workers" if topology.devices:
            gpu.simulate(topology.devices)
        case "tpu":
            tpu_system.simulate(topology.devices)
    if topology.kind != "tpu":
        tpu_errors.explain_absence(str(topology))
