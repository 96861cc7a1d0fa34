"""Publishes reports of Lockstep's own code in a kernel to the page: metrics, progress, notices, pictures.

The learner's kernel sends them as Jupyter messages. Any other process of a cluster sends them to the kernel, which
forwards them with that process's lane (see ``runners.wire.reports`` for their contents).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runners.wire.reports import METRIC, NOTICE, PICTURE, PROGRESS, json_number

Sink = Callable[[str, dict[str, Any], str | None], None]
"""Takes a message's type, content and lane."""

_sink: Sink | None = None


def set_sink(sink: Sink | None) -> None:
    """Choose where this process's reports go; None: nowhere, as for a Jupyter client that does not understand them."""
    global _sink
    _sink = sink


def has_sink() -> bool:
    """Whether anything receives this process's reports."""
    return _sink is not None


def send(kind: str, content: dict[str, Any], lane: str | None = None) -> None:
    """Send any Jupyter message of the output channel."""
    if _sink is not None:
        _sink(kind, content, lane)


def metric(
    step: int,
    values: Mapping[str, float],
    per: str = "step",
    lane: str | None = None,
    training: str | None = None,
) -> None:
    """Report the metrics of one step or epoch. Call at most ten times a second: each becomes an event of the run."""
    named = {name: json_number(value) for name, value in values.items()}
    report = {"step": int(step), "per": per, "values": named} | ({"training": training} if training else {})
    _display({METRIC: report}, lane)


def progress(
    label: str,
    done: int,
    total: int | None,
    unit: str = "step",
    left_s: float | None = None,
    lane: str | None = None,
) -> None:
    """Report the progress of a task; ``left_s`` in seconds. Call at most twice a second."""
    _display({PROGRESS: {"label": label, "done": done, "total": total, "unit": unit, "left_s": left_s}}, lane)


def notice(code: str, lane: str | None = None, **values: str | float) -> None:
    """Send one of the notices in ``runners.wire.reports.NOTICES``."""
    _display({NOTICE: {"code": code, "values": values}}, lane)


def picture(content: Mapping[str, Any], text: str, lane: str | None = None) -> None:
    """Show a picture that the page draws; ``text`` says the same for clients that cannot draw it."""
    _display({PICTURE: dict(content), "text/plain": text}, lane)


def _display(data: dict[str, Any], lane: str | None) -> None:
    send("display_data", {"data": data, "metadata": {}, "transient": {}}, lane)
