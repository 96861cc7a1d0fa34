"""Turns the metrics that ``metric_parser`` finds in printed lines into points on one axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runners.guest.reporting.metric_parser import parse_metrics


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """Metrics, and the step or epoch after which they were printed."""

    step: int
    per: Literal["step", "epoch"]
    values: dict[str, float]


class PrintedMetrics:
    """The points of a program's printed lines."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        """The epoch of a heading such as ``Epoch 3``, whose metrics follow on the next lines."""
        self._at = (0, 0)
        """The last epoch and step that a line named."""
        self._before = 0
        """Steps of the previous epochs."""

    def take(self, line: str) -> MetricPoint | None:
        """Read one line. Numbers without an epoch or a step, in the line or above it, are only text."""
        found = parse_metrics(line)
        if found is None:
            return None
        if not found.values:
            self._epoch = found.epoch
            return None
        if found.step is not None:
            return MetricPoint(self._step(found.step, found.steps, found.epoch), "step", found.values)
        epoch, self._epoch = found.epoch if found.epoch is not None else self._epoch, None
        return None if epoch is None else MetricPoint(epoch, "epoch", found.values)

    def _step(self, step: int, steps: int | None, epoch: int | None) -> int:
        """Steps that restart with each epoch continue from the previous epoch."""
        last_epoch, last_step = self._at
        epoch = last_epoch if epoch is None else epoch
        if epoch > last_epoch and step <= last_step:
            self._before += steps or last_step + 1
        elif step < last_step:
            self._before = 0
        self._at = (epoch, step)
        return self._before + step
