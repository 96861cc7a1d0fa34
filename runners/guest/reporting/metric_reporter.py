"""Reports the metrics of the run in progress to the page: from ``fit``, ``lockstep.log`` and printed lines.

Each process has one reporter. It sends at most ten metrics a second, except for the first epochs of a run if they are
quick, and always the last one. If ``fit`` or ``log`` reports, printed lines are only text, because they would repeat
the same metrics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from runners.guest.reporting import publisher
from runners.guest.reporting.metric_parser import MAX_LINE
from runners.guest.reporting.printed_metrics import PrintedMetrics
from runners.guest.reporting.throttle import Throttle, TimeEstimator

STEPS_PER_S = 8
_EPOCHS_PER_S = 2
_QUICK_EPOCHS = 50
"""The number of epochs that are always sent, however quick: an epoch matters more than a step."""
_PROGRESS_PER_S = 2
_LINES_PER_S = 500
"""The most lines parsed in a second, so that a program that prints many more is not slowed down."""

Value = float | Callable[[], float | None]
"""A number, or a function that reads it when it is sent (it may wait for a device); returns None if it is not one."""

_Numbers = tuple[int, dict[str, Value], str | None, str | None]
"""A count of steps or epochs, the metrics after it, their lane, unless it is the process's own, and the training."""


class MetricReporter:
    """See the module. ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.run = 0
        """Counts the runs of this process."""
        self._clock = clock
        self._steps: Throttle[_Numbers] = Throttle(1 / STEPS_PER_S, partial(_send, per="step"), clock)
        send_epoch = partial(_send, per="epoch")
        self._epochs: Throttle[_Numbers] = Throttle(1 / _EPOCHS_PER_S, send_epoch, clock, _QUICK_EPOCHS)
        self._told = False
        self._printed: dict[str | None, PrintedMetrics] = {}
        """The printed metrics of each lane."""
        self._rest: dict[tuple[str, str | None], str] = {}
        self._second, self._lines = -1, 0

    def begin_run(self) -> None:
        """Start a run: forget the previous one."""
        self.run += 1
        self._steps.forget()
        self._epochs.forget()
        self._told = False
        self._printed, self._rest = {}, {}

    def end_run(self) -> None:
        """Send the pending metrics: a run, an epoch or a process ends."""
        self._steps.flush()
        self._epochs.flush()

    flush = end_run

    def tell(
        self,
        step: int,
        values: Mapping[str, Value],
        per: Literal["step", "epoch"] = "step",
        training: str | None = None,
    ) -> None:
        """Take the metrics of ``fit`` or ``log``. Those of an epoch come after those of its last step."""
        if values:
            self._told = True
            self._offer(step, values, per, None, training)

    def printed(self, text: str, stream: str = "stdout", lane: str | None = None) -> None:
        """Take printed text of a stream, in pieces of any size; parses whole lines."""
        if self._told or not text:
            return
        *lines, rest = (self._rest.get((stream, lane), "") + text).split("\n")
        self._rest[stream, lane] = rest[: MAX_LINE + 1]
        printed = self._printed.setdefault(lane, PrintedMetrics())
        for line in lines:
            worth_it = (":" in line or "=" in line or "poch" in line) and len(line) <= MAX_LINE
            if worth_it and self._may_read() and (point := printed.take(line.rstrip("\r").rpartition("\r")[2])):
                self._offer(point.step, dict(point.values), point.per, lane)

    def _may_read(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        return self._lines <= _LINES_PER_S

    def _offer(
        self, step: int, values: Mapping[str, Value], per: str, lane: str | None, training: str | None = None
    ) -> None:
        kind = (lane, training, *sorted(values))
        if per == "step":
            self._steps.offer(kind, (step, dict(values), lane, training))
            return
        if self._epochs.is_due(kind):
            self._steps.flush()
        self._epochs.offer(kind, (step, dict(values), lane, training))


def _send(numbers: _Numbers, per: str) -> None:
    count, values, lane, training = numbers
    read = ((name, value() if callable(value) else value) for name, value in values.items())
    publisher.metric(count, {name: value for name, value in read if value is not None}, per, lane, training)


class ProgressReporter:
    """Reports the progress of one task: at its start, at its end, and at most twice a second in between.

    Args:
        label: its name, such as ``fit``.
        unit: what it counts: steps, epochs or items.
        clock: returns seconds.
    """

    def __init__(self, label: str, unit: str = "step", clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._unit, self._clock = label, unit, clock
        self._pace = TimeEstimator()
        self._throttle: Throttle[tuple[int, int | None, float | None]] = Throttle(
            1 / _PROGRESS_PER_S, self._send, clock
        )

    def reached(self, done: int, total: int | None) -> None:
        """Note that ``done`` of ``total`` are done."""
        left_s = self._pace.left_s(done, total, self._clock())
        self._throttle.offer(None, (done, total, left_s))

    def end(self) -> None:
        """Send the last report, if it was not sent yet."""
        self._throttle.flush()

    def _send(self, item: tuple[int, int | None, float | None]) -> None:
        done, total, left_s = item
        publisher.progress(self._label, done, total, self._unit, left_s)


_meter = MetricReporter()


def metric_reporter() -> MetricReporter:
    return _meter
