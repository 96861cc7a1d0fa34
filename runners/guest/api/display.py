"""Shows pictures, and knows which machine this session simulates."""

from __future__ import annotations

from typing import Any

from runners.guest.accelerators import real_devices
from runners.guest.api.pictures import Picture, device_name, replica_device
from runners.guest.reporting import publisher
from runners.wire.topology import Topology

_stands_for: str | None = None
_coordinated = False


def set_topology(topology: Topology) -> None:
    """Remember which task TensorFlow calls ``chief``, and what logical CPUs simulate, if anything."""
    global _stands_for, _coordinated
    _coordinated = topology.kind == "ps"
    _stands_for = (
        None
        if real_devices.granted_gpus() is not None
        else "TPU"
        if topology.kind == "tpu"
        else "GPU"
        if topology.devices
        else None
    )


def is_simulated() -> bool:
    """Whether logical CPUs simulate other devices here."""
    return _stands_for is not None


def show_picture(picture: Picture) -> None:
    """Send a picture to the page; if there is no page, print its text."""
    content, text = picture
    if publisher.has_sink():
        publisher.picture(content, text)
    else:
        print(text)


def replica_name(device: Any) -> str:
    return replica_device(str(device or ""), _stands_for)


def variable_devices(variable: Any) -> tuple[str, ...]:
    """The names of the devices that a variable has a copy or a piece on.

    The copies of a mirrored variable are on the replicas' devices; any other is where TensorFlow says.
    """
    copies = getattr(variable, "values", None)
    if isinstance(copies, tuple):
        return tuple(replica_name(copy.device) for copy in copies)
    pieces = getattr(variable, "variables", None)
    if isinstance(pieces, list | tuple):
        return tuple(device_name(piece.device, coordinated=_coordinated) for piece in pieces)
    return (device_name(str(variable.device or ""), coordinated=_coordinated),)
