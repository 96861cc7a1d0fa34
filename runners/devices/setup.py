"""Makes TensorFlow in a fresh process see the machine that a topology names."""

from __future__ import annotations

from runners.devices import collectives, feeds, gpu, real, tpu
from runners.devices.topology import Topology
from runners.kernel import place


def set_up(topology: Topology) -> None:
    """Show ``topology`` to this process. Call once, before any op ran; runs no op itself."""
    own = place.here()
    collectives.keep_apart(own.number if own else 0, max(1, len(topology.tasks)))
    feeds.outlive_their_iterators()
    if (shares := real.given()) is not None:
        if topology.kind == "tpu":
            tpu.explain_failure(str(topology))
        else:
            real.show(shares)
        return
    match topology.kind:
        case "gpu" | "workers" if topology.devices:
            gpu.simulate(topology.devices)
        case "tpu":
            tpu.simulate(topology.devices)
    if topology.kind != "tpu":
        tpu.explain_absence(str(topology))
