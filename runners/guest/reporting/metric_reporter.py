"""The numbers of the run in progress, on their way to the page: of ``fit``, ``lockstep.log`` and printed lines.

Each process has one meter. It sends ten metrics a second at most, apart from the first epochs of a run if they are
quick, and always the last one. Where ``fit`` or ``log``
reports, printed lines are only text: they say the same once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal

from runners.guest.reporting import publisher
from runners.guest.reporting.metric_parser import MAX_LINE
from runners.guest.reporting.printed_metrics import PrintedMetrics
from runners.guest.reporting.throttle import Throttle, TimeEstimator

STEPS_PER_S = 8
_EPOCHS_PER_S = 2
_QUICK_EPOCHS = 50
"""So many are sent however quick they are: each is worth more than a step."""
_PROGRESS_PER_S = 2
_LINES_PER_S = 500
"""So many that look like metrics are read; a program that prints more is not slowed down by it."""

Value = float | Callable[[], float | None]
"""A number, or what reads it once it is sent: that may wait for a device. None: it is no number after all."""

_Numbers = tuple[int, dict[str, Value], str | None]
"""A count of steps or epochs, the numbers after it, and their lane, if it is not the process's own."""


class MetricReporter:
    """See the module. ``clock`` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.run = 0
        """Counts the runs of this process."""
        self._clock = clock
        self._steps: Throttle[_Numbers] = Throttle(1 / STEPS_PER_S, _send_step, clock)
        self._epochs: Throttle[_Numbers] = Throttle(1 / _EPOCHS_PER_S, _send_epoch, clock, _QUICK_EPOCHS)
        self._told = False
        self._printed: dict[str | None, PrintedMetrics] = {}
        """What each lane has printed."""
        self._rest: dict[tuple[str, str | None], str] = {}
        self._second, self._lines = -1, 0

    def begin_run(self) -> None:
        """A run begins: nothing is left of the one before."""
        self.run += 1
        self._steps.forget()
        self._epochs.forget()
        self._told = False
        self._printed, self._rest = {}, {}

    def end_run(self) -> None:
        """A run, an epoch or a process ends: send what waits."""
        self._steps.flush()
        self._epochs.flush()

    flush = end_run

    def tell(self, step: int, values: Mapping[str, Value], per: Literal["step", "epoch"] = "step") -> None:
        """Take the numbers of ``fit`` or ``log``. Those of an epoch come after those of its last step."""
        if values:
            self._told = True
            self._offer(step, values, per, None)

    def printed(self, text: str, stream: str = "stdout", lane: str | None = None) -> None:
        """Take what a program prints to a stream, in pieces of any size; whole lines are read."""
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

    def _offer(self, step: int, values: Mapping[str, Value], per: str, lane: str | None) -> None:
        kind = (lane, *sorted(values))
        if per == "step":
            self._steps.offer(kind, (step, dict(values), lane))
            return
        if self._epochs.is_due(kind):
            self._steps.flush()
        self._epochs.offer(kind, (step, dict(values), lane))


def _send_step(numbers: _Numbers) -> None:
    _send(numbers, "step")


def _send_epoch(numbers: _Numbers) -> None:
    _send(numbers, "epoch")


def _send(numbers: _Numbers, per: str) -> None:
    count, values, lane = numbers
    read = ((name, value() if callable(value) else value) for name, value in values.items())
    publisher.metric(count, {name: value for name, value in read if value is not None}, per, lane)


class ProgressReporter:
    """The progress of one long thing: it is reported twice a second at most, at its beginning and at its end.

    Args:
        label: what it is, as in ``fit``.
        unit: what is counted: steps, epochs or items.
        clock: seconds.
    """

    def __init__(self, label: str, unit: str = "step", clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._unit, self._clock = label, unit, clock
        self._pace = TimeEstimator()
        self._throttle: Throttle[tuple[int, int | None, float | None]] = Throttle(
            1 / _PROGRESS_PER_S, self._send, clock
        )

    def reached(self, done: int, total: int | None) -> None:
        """So many of ``total`` are done."""
        left_s = self._pace.left_s(done, total, self._clock())
        self._throttle.offer(None, (done, total, left_s))

    def end(self) -> None:
        """Nothing more will come: say what was said last, if it was not sent."""
        self._throttle.flush()

    def _send(self, item: tuple[int, int | None, float | None]) -> None:
        done, total, left_s = item
        publisher.progress(self._label, done, total, self._unit, left_s)


_meter = MetricReporter()


def metric_reporter() -> MetricReporter:
    """This process's."""
    return _meter
