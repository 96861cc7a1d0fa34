"""Printed lines, and the metrics in them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.guest.reporting.metric_parser import MAX_LINE, ParsedMetrics, parse_metrics


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Epoch 3, Loss: 0.28, Accuracy: 89.4", ParsedMetrics({"loss": 0.28, "accuracy": 89.4}, epoch=3)),
        ("Epoch 3, Loss: 0.28, Accuracy: 89.4%", ParsedMetrics({"loss": 0.28, "accuracy": 89.4}, epoch=3)),
        ("Epoch 1, Loss: 1.2, Test Loss: 2, Test Accuracy: 9e1",
         ParsedMetrics({"loss": 1.2, "test_loss": 2, "test_accuracy": 90}, epoch=1)),
        ("Epoch: 0, accuracy: 0.80, train_loss: 0.6.", ParsedMetrics({"accuracy": 0.8, "train_loss": 0.6}, epoch=0)),
        ("Finished epoch 0, accuracy is 0.5.", ParsedMetrics({"accuracy": 0.5}, epoch=0)),
        ("Epoch 1/10", ParsedMetrics({}, epoch=1)),
        ("epoch 4 loss 0.5 acc 0.75", ParsedMetrics({"loss": 0.5, "acc": 0.75}, epoch=4)),
        ("[epoch 2] kl: 0.01", ParsedMetrics({"kl": 0.01}, epoch=2)),
        ("step 100: loss = 0.3", ParsedMetrics({"loss": 0.3}, step=100)),
        ("step=100 loss=.3 lr=1e-3", ParsedMetrics({"loss": 0.3, "lr": 0.001}, step=100)),
        ("Training loss (for one batch) at step 200: 0.913", ParsedMetrics({"training_loss": 0.913}, step=200)),
        ("Training acc over epoch: 0.847", ParsedMetrics({"training_acc": 0.847})),
        ("Epoch [2/5], Step [10/50], Loss: -0.5", ParsedMetrics({"loss": -0.5}, epoch=2, step=10, steps=50)),
        ("Epoch 1 Batch 0 Loss 4.4", ParsedMetrics({"loss": 4.4}, epoch=1, step=0)),
        ("loss: 0.25 - accuracy: 0.9", ParsedMetrics({"loss": 0.25, "accuracy": 0.9})),
        ("Final loss is 0.24", ParsedMetrics({"final_loss": 0.24})),
        ("\x1b[1mloss\x1b[0m: 0.25", ParsedMetrics({"loss": 0.25})),
        ("loss: tf.Tensor(0.28, shape=(), dtype=float32)", ParsedMetrics({"loss": 0.28})),
        ("Epoch 2, loss: 0.1, time: 3.2, took 4 s, 24ms", ParsedMetrics({"loss": 0.1}, epoch=2)),
        ("WORKER worker 0: step 5: loss 0.5", ParsedMetrics({"loss": 0.5}, step=5)),
        ("epoch 2: loss 0.4312 in 20 steps", ParsedMetrics({"loss": 0.4312}, epoch=2)),
        ("epoch 1  step  20  loss 0.6931  accuracy 0.5125", ParsedMetrics({"loss": 0.6931, "accuracy": 0.5125}, 1, 20)),
        ("steps 11 to 20  loss 0.6931  accuracy 0.5125", ParsedMetrics({"loss": 0.6931, "accuracy": 0.5125}, step=20)),
        ("100 steps in  4 calls: loss 0.4312", ParsedMetrics({"loss": 0.4312})),
        ("loss 0.4312   steps asked for: 40   made: 40", ParsedMetrics({"loss": 0.4312})),
        ("{'loss': 0.25, 'accuracy': 0.9}", ParsedMetrics({"loss": 0.25, "accuracy": 0.9})),
        ("Epoch 00003: val_loss: 0.31, lr: 1.0000e-03", ParsedMetrics({"val_loss": 0.31, "lr": 0.001}, epoch=3)),
        ("Epoch 1. Loss: 0.5. Accuracy: 0.75.", ParsedMetrics({"loss": 0.5, "accuracy": 0.75}, epoch=1)),
        ("step 1,250: loss 0.5", ParsedMetrics({"loss": 0.5}, step=1250)),
        ("Step #100: loss 0.5", ParsedMetrics({"loss": 0.5}, step=100)),
        ("loss after epoch 3: 0.5", ParsedMetrics({"loss": 0.5}, epoch=3)),
        ("epoch 3 loss 0.5 3.2s", ParsedMetrics({"loss": 0.5}, epoch=3)),
        ("epoch 3 loss 0.5, 640 examples", ParsedMetrics({"loss": 0.5}, epoch=3)),
        ("epoch 3 loss 0.5 ± 0.01", ParsedMetrics({"loss": 0.5}, epoch=3)),
        ("top-1 accuracy: 0.61", ParsedMetrics({"accuracy": 0.61})),
        ("Epoch 2:  45%|████▌     | 45/100 [00:10<00:12,  4.5it/s, loss=0.532]",
         ParsedMetrics({"loss": 0.532}, epoch=2)),
        ("INFO:tensorflow:loss = 2.31, step = 100 (0.524 sec)", ParsedMetrics({"loss": 2.31}, step=100)),
        ("INFO:tensorflow:Saving dict for global step 200: accuracy = 0.9, global_step = 200, loss = 0.3",
         ParsedMetrics({"accuracy": 0.9, "loss": 0.3}, step=200)),
        ("I1122 14:57:16.123456 139872 train.py:10] step 100, loss 0.5", ParsedMetrics({"loss": 0.5}, step=100)),
        ("2026-11-22 14:57:16,123 - INFO - Epoch 4 - loss: 0.5", ParsedMetrics({"loss": 0.5}, epoch=4)),
        ("[14:57:16] Epoch 4 | train loss 0.5 | val loss 0.6",
         ParsedMetrics({"train_loss": 0.5, "val_loss": 0.6}, epoch=4)),
    ],
)  # fmt: skip
def test_the_common_ways_to_print_a_metric_are_read(line: str, found: ParsedMetrics) -> None:
    assert parse_metrics(line) == found


def test_what_is_not_finite_is_read() -> None:
    found = parse_metrics("step 3: loss = nan")
    assert found is not None
    assert str(found.values) == "{'loss': nan}"
    assert parse_metrics("epoch 3: loss: inf") == ParsedMetrics({"loss": float("inf")}, epoch=3)


@pytest.mark.parametrize(
    "line",
    [
        "", "loss", "loss: ", "loss: none", "Number of devices: 4", "Batch size: 64", "REPLICAS = 4",
        "Epoch 2 took 3.2 s",
        "took 3.2 s", "time per step: 0.3", "x = 5", "(3, 4)", "http://127.0.0.1:8080/", "step 5",
        "10/10 ━━━━━━━━━━━━━━━━━━━━ 2s 24ms/step - accuracy: 0.1 - loss: 2.3",
        "10/10 [==============================] - 1s 2ms/step - loss: 2.3",
        "10/10 - 1s - 90ms/step - accuracy: 0.1000 - loss: 2.3000",
        "10/10 - 1s - loss: 2.3 - 1s/epoch - 90ms/step",
        "loss: 0.5 " + "x" * MAX_LINE,
    ],
)  # fmt: skip
def test_other_lines_and_keras_own_say_nothing(line: str) -> None:
    assert parse_metrics(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "loss after epoch            1      2      3      4      5      6",
        "loss after epoch  1  2",
        "loss after epoch: 1 2 3",
        "loss after epoch 1, 2, 3",
        "epoch 1   epoch 2   epoch 3   loss",
        "epoch      loss  accuracy      1",
        "step: 10 20 30, loss",
        "loss at step=10 | 20 | 30",
        "| epoch | 1 | 2 | 3 | loss: |",
        "loss: 1   loss: 2   loss: 3",
        "accuracy: epoch 1  epoch 2",
        "final  accuracy  at epoch  5   10  best",
        "rate: 0.1   0.5   0.9",
    ],
)  # fmt: skip
def test_the_head_of_a_table_says_nothing(line: str) -> None:
    assert parse_metrics(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "accuracy:  0.81   0.85   0.90",
        "1 replica, loss: 0.690  0.512  0.433",
        "2 replica(s), batch   64, rate 0.020: loss 2.268 2.140 1.792 1.528",
        "noise, cache    epoch 0: 0.81 0.12 0.07 0.45",
        "shuffle, cache  epoch 1: 4 0 5 3 1 6 7 2",
        "loss: [0.69, 0.51, 0.43]",
        "losses: 0.69, 0.51, 0.43",
        "loss: [0.69 0.51 0.43]",
        "{'loss': [0.69, 0.51], 'accuracy': [0.5, 0.75]}",
        "epoch 1: 3 1 4 1 5",
        "epoch 1:   250",
        "loss 0.5 0.4, epoch 1 2",
    ],
)
def test_a_row_or_a_list_of_numbers_says_nothing(line: str) -> None:
    assert parse_metrics(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "epoch 1: stops once loss < 0.1",
        "loss: 0.9 to 0.5",
        "loss: 0.9 -> 0.5",
        "accuracy: 45/50",
        "accuracy: 45 of 50",
        "error: 127.0.0.1:8080",
        "loss: 3.15.1",
        "lr: 2026-11-22",
        "precision@5: 0.9",
        "error 404: not found",
        "loss after 2 steps 0.5",
        "accuracy in 3 epochs",
        "step 5: examples/sec: 1200.5",
        "step 5: steps_per_second: 12.5",
        "INFO:tensorflow:global_step/sec: 120.5",
        "Epoch 1: val_loss improved from inf to 0.50000, saving model to best.keras",
        "Epoch 2: val_loss did not improve from 0.50000",
        "Epoch 3: ReduceLROnPlateau reducing learning rate to 0.0005000000237487257.",
        "Restoring model weights from the end of the best epoch: 3.",
        "Saved checkpoint for step 10: ./tf_ckpts/ckpt-1",
        "WARNING:tensorflow:5 out of the last 5 calls to <function f at 0x7f> triggered tf.function retracing: 1",
        "INFO:tensorflow:Reduce to /job:localhost/replica:0/task:0/device:CPU:0 then broadcast to ('/job:localhost',).",
        "INFO:tensorflow:Using MirroredStrategy with devices ('/device:GPU:0', '/device:GPU:1')",
        "2026-11-22 14:57:16.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] oneDNN: 0.0",
        "I0000 00:00:1732287436.123456  1234 service.cc:148] XLA service 0x7f initialized: 1",
        "Total params: 1,234 (4.82 KB)",
        "  0: tf.Tensor(0.6931, shape=(), dtype=float32),",
    ],
)
def test_a_number_that_is_part_of_something_else_says_nothing(line: str) -> None:
    assert parse_metrics(line) is None


@given(
    st.text(st.characters(exclude_categories=()), max_size=600) | st.text("epoch stlo:=0123.,/()[]-e\x1b", max_size=600)
)
def test_any_line_is_read_without_an_error(line: str) -> None:
    found = parse_metrics(line)
    if found is not None:
        assert all(isinstance(value, float) for value in found.values.values())
        assert len(found.values) <= 12


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "1",
        "a",
        "a ",
        "1.",
        "e1",
        "loss: ",
        "epoch ",
        "\x1b[",
        "a/",
        "-",
        "1/",
        "=:",
        "[",
        "loss 1 ",
        "1,",
        "x[",
        " ",
        "batch",
        "1 step",
        "inf \t",
        "1/nan",
    ],
)
def test_a_hostile_line_takes_no_longer_than_its_length(piece: str) -> None:
    line = (piece * MAX_LINE)[:MAX_LINE]
    began = time.process_time()
    for _ in range(20):
        parse_metrics(line)
    assert (time.process_time() - began) / 20 < 0.02
