"""The points that a program's printed lines make, one after the other: what ``lines`` finds, with counts of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runners.guest.reporting.metric_parser import parse_metrics

_MOST_LABELS = 64


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """Numbers and where they belong: after which step, or which epoch."""

    step: int
    per: Literal["step", "epoch"]
    values: dict[str, float]


class PrintedMetrics:
    """The points that a program's lines make, one line after the other."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._at = (0, 0)
        """The epoch and the step that a line said last."""
        self._before = 0
        """Steps of the epochs before."""
        self._counted: dict[tuple[str, tuple[str, ...]], int] = {}
        """Lines without a count, by their label and the names of their values."""
        self._first: dict[tuple[str, tuple[str, ...]], MetricPoint] = {}
        self._label: dict[tuple[str, ...], str] = {}
        """Of each set of names the label that came twice first: another one is about something else."""

    def take(self, line: str) -> list[MetricPoint]:
        """Read one line.

        What has no count of its own is counted here, if it comes again with nothing but other values: one alone is
        no course and waits, and lines about several things (``Adam: loss 0.3``, ``SGD: loss 0.4``) are none.
        """
        found = parse_metrics(line)
        if found is None:
            return []
        if not found.values:
            self._epoch = found.epoch
            return []
        if found.step is not None:
            return [MetricPoint(self._step(found.step, found.steps, found.epoch), "step", found.values)]
        if found.epoch is not None:
            self._epoch = None
            return [MetricPoint(found.epoch, "epoch", found.values)]
        if self._epoch is not None:
            epoch, self._epoch = self._epoch, None
            return [MetricPoint(epoch, "epoch", found.values)]
        return self._uncounted(found.values, found.label)

    def _step(self, step: int, steps: int | None, epoch: int | None) -> int:
        """Steps that begin anew with each epoch go on from the epoch before."""
        last_epoch, last_step = self._at
        epoch = last_epoch if epoch is None else epoch
        if epoch > last_epoch and step <= last_step:
            self._before += steps or last_step + 1
        elif step < last_step:
            self._before = 0
        self._at = (epoch, step)
        return self._before + step

    def _uncounted(self, values: dict[str, float], label: str) -> list[MetricPoint]:
        names = tuple(values)
        key = label, names
        if len(self._counted) >= _MOST_LABELS and key not in self._counted:
            oldest = next(iter(self._counted))
            del self._counted[oldest]
            self._first.pop(oldest, None)
        count = self._counted[key] = self._counted.get(key, 0) + 1
        point = MetricPoint(count, "step", values)
        if count == 1:
            self._first[key] = point
            return []
        first = self._first.pop(key, None)
        if len(self._label) >= _MOST_LABELS and names not in self._label:
            return []
        if self._label.setdefault(names, label) != label:
            return []
        return [first, point] if first else [point]
