"""The pictures of the ``lockstep`` helpers, as plain data for the page and as text for everything else. Pure.

The text says everything that the picture shows: a terminal, a notebook or a screen reader gets it instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_VALUES = 16
"""The most numbers shown of one tensor."""
MAX_EXAMPLES = 64
"""The most examples of one replica that are shown by name; all are counted."""
MAX_VARIABLES = 200

Picture = tuple[dict[str, Any], str]


@dataclass(frozen=True, slots=True)
class ReplicaExamples:
    lane: str
    device: str
    examples: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class VariablePlacement:
    """Where one variable lives; ``size`` is the bytes of one copy."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    devices: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """One all-reduce of one variable's gradient and the update after it, with a few numbers of each.

    ``positions`` are the indices of these numbers in the variable.
    """

    variable: str
    shape: tuple[int, ...]
    operation: str
    algorithm: str
    devices: tuple[str, ...]
    positions: tuple[tuple[int, ...], ...]
    replicas: tuple[tuple[float, ...], ...]
    reduced: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...] | None


def shards_picture(shares: Sequence[ReplicaExamples], batches: int) -> Picture:
    """Which examples went to which replica."""
    title = f"{_many(batches, 'batch', 'batches')}, {_many(len(shares), 'replica', 'replicas')}"
    replicas = [
        {"lane": s.lane, "device": s.device, "examples": list(s.examples[:MAX_EXAMPLES]), "count": s.count}
        for s in shares
    ]
    lines = [f"Which examples went where: {title}"]
    for share in shares:
        shown = ", ".join(share.examples[:MAX_EXAMPLES])
        more = f" and {share.count - MAX_EXAMPLES} more" if share.count > MAX_EXAMPLES else ""
        lines.append(f"{share.lane} on {share.device}: {_many(share.count, 'example', 'examples')}: {shown}{more}")
    return {"picture": "shards", "title": title, "replicas": replicas, "labels": None}, "\n".join(lines)


def placement_picture(places: Sequence[VariablePlacement]) -> Picture:
    """Where variables live."""
    shown = places[:MAX_VARIABLES]
    variables = [
        {"name": p.name, "shape": list(p.shape), "dtype": p.dtype, "kind": p.kind, "devices": list(p.devices),
         "bytes": p.size}
        for p in shown
    ]  # fmt: skip
    lines = [f"Where {_many(len(places), 'variable', 'variables')} live; bytes are for one copy"]
    for p in shown:
        where = ", ".join(p.devices)
        lines.append(f"{p.name} {_shape(p.shape)} {p.dtype}, {p.size:,} bytes: {p.kind} on {where}")
    if len(places) > len(shown):
        lines.append(f"… and {len(places) - len(shown)} more")
    return {"picture": "placement", "variables": variables}, "\n".join(lines)


def replay_picture(one: Reduction) -> Picture:
    """One all-reduce: each replica's gradient, the sum, and the weights before and after."""
    content = {
        "picture": "replay",
        "variable": one.variable,
        "shape": list(one.shape),
        "operation": one.operation,
        "algorithm": one.algorithm,
        "positions": [list(position) for position in one.positions],
        "replicas": [
            {"lane": f"replica {i}", "device": device, "values": _plain(values)}
            for i, (device, values) in enumerate(zip(one.devices, one.replicas, strict=True))
        ],
        "reduced": _plain(one.reduced),
        "before": _plain(one.before),
        "after": None if one.after is None else _plain(one.after),
    }
    count = math.prod(one.shape)
    which = f"all {count} numbers" if count == len(one.positions) else f"{len(one.positions)} of {count:,} numbers"
    rows = [("position", [",".join(map(str, position)) or "-" for position in one.positions])]
    rows += [(f"replica {i}", _texts(values)) for i, values in enumerate(one.replicas)]
    rows += [(one.operation, _texts(one.reduced)), ("before", _texts(one.before))]
    if one.after is not None:
        rows.append(("after", _texts(one.after)))
    title = f"One all-reduce: the gradient of {one.variable} {_shape(one.shape)}, {which}, by {one.algorithm}"
    return content, "\n".join([title, *_table(rows)])


def largest_values(reduced: Sequence[float], most: int = MAX_VALUES) -> list[int]:
    """The indices of a flat tensor's largest numbers, in ascending order."""
    largest = sorted(range(len(reduced)), key=lambda i: (-_size(reduced[i]), i))[:most]
    return sorted(largest)


def device_name(device: str, *, coordinated: bool = False) -> str:
    """Shorten the name of a TensorFlow device: ``CPU:1``, and ``worker 0 CPU:0`` for one of another process.

    ``coordinated``: whether the task that TensorFlow calls ``chief`` is the coordinator.
    """
    parts = dict(part.split(":", 1) for part in device.strip("/").split("/") if ":" in part)
    kind, _, number = parts.get("device", parts.get("CPU") or "CPU:0").partition(":")
    job = parts.get("job", "localhost")
    name = f"{kind}:{number or 0}"
    if coordinated and job == "chief":
        return f"coordinator {name}"
    return name if job == "localhost" else f"{job} {parts.get('task', '0')} {name}"


def replica_device(device: str, stands_for: str | None) -> str:
    """Name a replica's device. ``stands_for``: the device type that logical CPUs simulate here, such as ``GPU``."""
    name = device_name(device)
    if stands_for is None or "CPU:" not in name:
        return name
    return f"{name.replace('CPU:', f'{stands_for}:')} (simulated by {name})"


def _size(value: float) -> float:
    return abs(value) if not math.isnan(value) else math.inf


def _plain(values: Sequence[float]) -> list[float | str]:
    """Make values fit for JSON, which has no numbers that are not finite."""
    return [value if math.isfinite(value) else str(value) for value in map(float, values)]


def _texts(values: Sequence[float]) -> list[str]:
    return [f"{value:.4g}" for value in values]


def _table(rows: Sequence[tuple[str, list[str]]]) -> list[str]:
    head = max(len(name) for name, _ in rows)
    widths = [max(len(cells[i]) for _, cells in rows) for i in range(len(rows[0][1]))]
    return [
        "  ".join([name.ljust(head), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))])
        for name, cells in rows
    ]


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
