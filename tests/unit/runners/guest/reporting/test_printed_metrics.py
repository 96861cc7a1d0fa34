"""The points in a program's printed lines."""

from __future__ import annotations

from runners.guest.reporting.printed_metrics import PrintedMetrics


def read(*lines: str) -> list[tuple[int, str, dict[str, float]]]:
    printed = PrintedMetrics()
    points = [point for line in lines if (point := printed.take(line))]
    return [(point.step, point.per, point.values) for point in points]


def test_a_line_of_an_epoch_is_a_point_of_that_epoch() -> None:
    assert read("Epoch 1, loss: 3", "Epoch 2, loss: 2") == [(1, "epoch", {"loss": 3}), (2, "epoch", {"loss": 2})]


def test_an_epoch_that_is_only_named_has_the_next_numbers() -> None:
    assert read("Epoch 1/2", "loss: 3", "Epoch 2/2", "loss: 2") == [
        (1, "epoch", {"loss": 3}),
        (2, "epoch", {"loss": 2}),
    ]


def test_steps_that_restart_with_each_epoch_continue() -> None:
    lines = [f"Epoch {e}/3, step {s}/10, loss: {s}" for e in (1, 2, 3) for s in (5, 10)]
    assert [step for step, _, _ in read(*lines)] == [5, 10, 15, 20, 25, 30]
    lines = [f"epoch {e} batch {s} loss {s}" for e in (0, 1) for s in (0, 1, 2)]
    assert [step for step, _, _ in read(*lines)] == [0, 1, 2, 3, 4, 5]


def test_numbers_without_a_count_are_only_text() -> None:
    assert read("Test accuracy: 0.9", "loss: 3", "loss: 2", "Adam: loss 0.3", "SGD: loss 0.4") == []
    assert read("batch  16: loss 0.3", "loss: 0.5") == [(16, "step", {"loss": 0.3})]


def test_a_table_with_a_head_is_no_training_and_shifts_none() -> None:
    assert read(
        "loss after epoch            1      2      3",
        "1 replica, rate    0.4   0.690  0.512  0.433",
        "4, same rate       0.4   0.692  0.640  0.601",
        "epoch 1: loss 0.5",
        "epoch 2: loss 0.4",
    ) == [(1, "epoch", {"loss": 0.5}), (2, "epoch", {"loss": 0.4})]
