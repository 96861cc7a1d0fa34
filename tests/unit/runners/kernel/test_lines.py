"""Lines that programs print, and the numbers in them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.kernel.lines import LONGEST_LINE, Found, Point, Printed, metrics_in


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Epoch 3, Loss: 0.28, Accuracy: 89.4", Found({"loss": 0.28, "accuracy": 89.4}, epoch=3)),
        ("Epoch 3, Loss: 0.28, Accuracy: 89.4%", Found({"loss": 0.28, "accuracy": 89.4}, epoch=3)),
        ("Epoch 1, Loss: 1.2, Test Loss: 2, Test Accuracy: 9e1",
         Found({"loss": 1.2, "test_loss": 2, "test_accuracy": 90}, epoch=1)),
        ("Epoch: 0, accuracy: 0.80, train_loss: 0.6.", Found({"accuracy": 0.8, "train_loss": 0.6}, epoch=0)),
        ("Finished epoch 0, accuracy is 0.5.", Found({"accuracy": 0.5}, epoch=0)),
        ("Epoch 1/10", Found({}, epoch=1)),
        ("epoch 4 loss 0.5 acc 0.75", Found({"loss": 0.5, "acc": 0.75}, epoch=4)),
        ("[epoch 2] kl: 0.01", Found({"kl": 0.01}, epoch=2)),
        ("step 100: loss = 0.3", Found({"loss": 0.3}, step=100)),
        ("step=100 loss=.3 lr=1e-3", Found({"loss": 0.3, "lr": 0.001}, step=100)),
        ("Training loss (for one batch) at step 200: 0.913", Found({"training_loss": 0.913}, step=200)),
        ("Training acc over epoch: 0.847", Found({"training_acc": 0.847})),
        ("Epoch [2/5], Step [10/50], Loss: -0.5", Found({"loss": -0.5}, epoch=2, step=10, steps=50)),
        ("Epoch 1 Batch 0 Loss 4.4", Found({"loss": 4.4}, epoch=1, step=0)),
        ("loss: 0.25 - accuracy: 0.9", Found({"loss": 0.25, "accuracy": 0.9})),
        ("Final loss is 0.24", Found({"final_loss": 0.24})),
        ("\x1b[1mloss\x1b[0m: 0.25", Found({"loss": 0.25})),
        ("loss: tf.Tensor(0.28, shape=(), dtype=float32)", Found({"loss": 0.28})),
        ("Epoch 2, loss: 0.1, time: 3.2, took 4 s, 24ms", Found({"loss": 0.1}, epoch=2)),
        ("Epoch 2 took 3.2 s", Found({}, epoch=2)),
        ("WORKER worker 0: step 5: loss 0.5", Found({"loss": 0.5}, step=5)),
    ],
)  # fmt: skip
def test_the_common_ways_to_print_a_metric_are_read(line: str, found: Found) -> None:
    assert metrics_in(line) == found


def test_what_is_not_finite_is_read() -> None:
    found = metrics_in("step 3: loss = nan")
    assert found is not None
    assert str(found.values) == "{'loss': nan}"
    assert metrics_in("epoch 3: loss: inf") == Found({"loss": float("inf")}, epoch=3)


@pytest.mark.parametrize(
    "line",
    [
        "", "loss", "loss: ", "loss: none", "Number of devices: 4", "Batch size: 64", "REPLICAS = 4",
        "took 3.2 s", "time per step: 0.3", "x = 5", "(3, 4)", "http://127.0.0.1:8080/", "step 5",
        "10/10 ━━━━━━━━━━━━━━━━━━━━ 2s 24ms/step - accuracy: 0.1 - loss: 2.3",
        "10/10 [==============================] - 1s 2ms/step - loss: 2.3",
        "10/10 - 1s - 90ms/step - accuracy: 0.1000 - loss: 2.3000",
        "10/10 - 1s - loss: 2.3 - 1s/epoch - 90ms/step",
        "loss: 0.5 " + "x" * LONGEST_LINE,
    ],
)  # fmt: skip
def test_other_lines_and_keras_own_say_nothing(line: str) -> None:
    assert metrics_in(line) is None


@given(
    st.text(st.characters(exclude_categories=()), max_size=600) | st.text("epoch stlo:=0123.,/()[]-e\x1b", max_size=600)
)
def test_any_line_is_read_without_an_error(line: str) -> None:
    found = metrics_in(line)
    if found is not None:
        assert all(isinstance(value, float) for value in found.values.values())
        assert len(found.values) <= 12


@pytest.mark.parametrize("piece", ["(", "1", "a", "a ", "1.", "e1", "loss: ", "epoch ", "\x1b[", "a/", "-", "1/", "=:"])
def test_a_hostile_line_takes_no_longer_than_its_length(piece: str) -> None:
    line = (piece * LONGEST_LINE)[:LONGEST_LINE]
    began = time.process_time()
    for _ in range(20):
        metrics_in(line)
    assert (time.process_time() - began) / 20 < 0.02


def read(*lines: str) -> list[tuple[int, str, dict[str, float]]]:
    printed = Printed()
    points: list[Point] = [point for line in lines for point in printed.take(line)]
    return [(point.step, point.per, point.values) for point in points]


def test_a_line_of_an_epoch_is_a_point_of_that_epoch() -> None:
    assert read("Epoch 1, loss: 3", "Epoch 2, loss: 2") == [(1, "epoch", {"loss": 3}), (2, "epoch", {"loss": 2})]


def test_an_epoch_that_is_only_named_has_the_next_numbers() -> None:
    assert read("Epoch 1/2", "loss: 3", "Epoch 2/2", "loss: 2") == [
        (1, "epoch", {"loss": 3}),
        (2, "epoch", {"loss": 2}),
    ]


def test_steps_that_begin_anew_with_each_epoch_go_on() -> None:
    lines = [f"Epoch {e}/3, step {s}/10, loss: {s}" for e in (1, 2, 3) for s in (5, 10)]
    assert [step for step, _, _ in read(*lines)] == [5, 10, 15, 20, 25, 30]
    lines = [f"epoch {e} batch {s} loss {s}" for e in (0, 1) for s in (0, 1, 2)]
    assert [step for step, _, _ in read(*lines)] == [0, 1, 2, 3, 4, 5]


def test_numbers_without_a_count_are_counted_and_one_alone_is_no_course() -> None:
    assert read("Test accuracy: 0.9") == []
    assert read("loss: 3", "loss: 2", "loss: 1") == [
        (1, "step", {"loss": 3}),
        (2, "step", {"loss": 2}),
        (3, "step", {"loss": 1}),
    ]
