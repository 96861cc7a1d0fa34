"""Reporting the metrics of a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from runners.guest.reporting import publisher
from runners.guest.reporting.metric_reporter import MetricReporter, ProgressReporter
from runners.guest.reporting.printed_metrics import PrintedMetrics
from runners.wire.reports import METRIC, PROGRESS

Sent = list[dict[str, Any]]


class Clock:
    """A clock that the test sets, in seconds."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sent() -> Iterator[Sent]:
    """The data of the reports."""
    reports: Sent = []
    publisher.set_sink(lambda _kind, content, _lane: reports.append(content["data"]))
    yield reports
    publisher.set_sink(None)


def metrics(sent: Sent) -> list[tuple[int, str, dict[str, float]]]:
    return [(d[METRIC]["step"], d[METRIC]["per"], d[METRIC]["values"]) for d in sent if METRIC in d]


def test_steps_are_thinned_out_and_the_last_of_an_epoch_comes_before_the_epoch(sent: Sent) -> None:
    clock = Clock()
    meter = MetricReporter(clock)
    for step in range(1, 101):
        clock.now += 0.01
        meter.tell(step, {"loss": float(step)})
    meter.tell(1, {"loss": 0.5}, "epoch")

    steps = [step for step, per, _ in metrics(sent) if per == "step"]
    assert len(steps) in (8, 9, 10)
    assert steps[-1] == 100
    assert metrics(sent)[-1] == (1, "epoch", {"loss": 0.5})


def test_many_quick_epochs_are_thinned_out_as_well(sent: Sent) -> None:
    clock = Clock()
    meter = MetricReporter(clock)
    for epoch in range(1, 201):
        clock.now += 0.005
        meter.tell(epoch * 2, {"loss": 1.0})
        meter.tell(epoch, {"loss": 1.0}, "epoch")
    assert len([step for step, per, _ in metrics(sent) if per == "epoch"]) in (52, 53, 54)
    assert len(sent) <= 120
    meter.end_run()
    assert (200, "epoch", {"loss": 1.0}) in metrics(sent)
    assert (400, "step", {"loss": 1.0}) in metrics(sent)


def test_a_value_is_read_only_if_it_is_sent(sent: Sent) -> None:
    read: list[int] = []
    meter = MetricReporter(Clock())

    def loss(step: int) -> float:
        read.append(step)
        return 0.5

    for step in range(1, 6):
        meter.tell(step, {"loss": partial(loss, step)})
    meter.end_run()
    assert read == [1, 5]
    assert [step for step, _, _ in metrics(sent)] == [1, 5]


def test_what_turns_out_to_be_no_number_is_left_out(sent: Sent) -> None:
    MetricReporter(Clock()).tell(1, {"loss": 0.5, "name": lambda: None})
    assert metrics(sent) == [(1, "step", {"loss": 0.5})]


def test_printed_lines_are_read_in_whatever_pieces_they_come(sent: Sent) -> None:
    meter = MetricReporter(Clock())
    for piece in ("Epoch 1, lo", "ss: 0.", "5", "\nEpo", "ch 2, loss: 0.4\nmore"):
        meter.printed(piece)
    meter.end_run()
    assert metrics(sent) == [(1, "epoch", {"loss": 0.5}), (2, "epoch", {"loss": 0.4})]


def test_a_line_without_end_is_not_kept(sent: Sent) -> None:
    meter = MetricReporter(Clock())
    for _ in range(1000):
        meter.printed("loss: 0.5 " * 100)
    assert len(meter._rest["stdout", None]) < 1000
    meter.printed("\nEpoch 1, loss: 0.5\n")
    assert metrics(sent) == [(1, "epoch", {"loss": 0.5})]


def test_where_training_reports_itself_printed_lines_are_only_text(sent: Sent) -> None:
    meter = MetricReporter(Clock())
    meter.tell(1, {"loss": 0.5})
    meter.printed("Epoch 1, loss: 0.5\n")
    assert len(sent) == 1
    meter.begin_run()
    meter.printed("Epoch 1, loss: 0.5\n")
    assert len(sent) == 2


def test_of_a_flood_of_lines_only_so_many_are_read(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = MetricReporter(Clock())
    taken: list[str] = []

    def take(_printed: PrintedMetrics, line: str) -> None:
        taken.append(line)

    monkeypatch.setattr(PrintedMetrics, "take", take)
    for n in range(5_000):
        meter.printed(f"step {n}: loss = 0.5\n")
    assert len(taken) == 500


def test_progress_comes_twice_a_second_and_at_its_end(sent: Sent) -> None:
    clock = Clock()
    course = ProgressReporter("fit", clock=clock)
    for done in range(101):
        course.reached(done, 100)
        clock.now += 0.02
    course.end()

    said = [d[PROGRESS] for d in sent]
    assert (said[0]["done"], said[0]["total"], said[0]["left_s"]) == (0, 100, None)
    assert (said[-1]["done"], said[-1]["left_s"]) == (100, 0)
    assert 4 <= len(said) <= 6
    assert said[2]["left_s"] == pytest.approx((100 - said[2]["done"]) * 0.02, rel=0.2)


def test_lines_of_two_streams_are_not_mixed_up(sent: Sent) -> None:
    meter = MetricReporter(Clock())
    meter.printed("Epoch 1, lo")
    meter.printed("something else\n", "stderr")
    meter.printed("ss: 0.5\n")
    assert metrics(sent) == [(1, "epoch", {"loss": 0.5})]


def test_lanes_count_for_themselves(sent: Sent) -> None:
    meter = MetricReporter(Clock())
    for lane in ("replica 0", "replica 1"):
        meter.printed("Epoch 1\nloss: 0.5\n", lane=lane)
    assert metrics(sent) == [(1, "epoch", {"loss": 0.5})] * 2
