"""Whether simulated GPUs cost more than logical devices set up by hand: the same training on ``gpu:4`` and on four
logical CPUs, and ops under ``tf.device``, in two bare processes that take turns.

Goal: within 3 %.

    python benchmarks/simulated_gpus.py [--quick] [--json]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

from harness import PLAIN_ENVIRONMENT, Row, arguments, report
from sandbox_training import EPOCH, PREPARE

SIMULATED = """
from runners.guest.tf_patches import eager_ops, gpu
eager_ops.subject.apply()
gpu.simulate(4)
"""
BY_HAND = """
from runners.guest.tf_patches import eager_ops
eager_ops.subject.apply()
import tensorflow as tf
four = [tf.config.LogicalDeviceConfiguration()] * 4
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], four)
"""
OPS = """
a = tf.ones([2, 2])
wall, cpu = time.perf_counter(), time.process_time()
for _ in range(5000):
    with tf.device("{device}"):
        a = a * 1.0
print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
"""
SIDES = ("simulated", "by hand")
_LOOP = "import sys\nfor line in sys.stdin: exec(eval(line))"


class Side:
    """A process that lives through the whole measurement."""

    def __init__(self, setting: str) -> None:
        command = [sys.executable, "-c", _LOOP]
        self._process: Any = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-3, text=True, env=PLAIN_ENVIRONMENT)
        self._send(setting)

    def run(self, code: str) -> str:
        """Run code that prints one line, and return that."""
        self._send(code)
        said: str = self._process.stdout.readline()
        return said

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _send(self, code: str) -> None:
        self._process.stdin.write(repr(code) + "\n")
        self._process.stdin.flush()


def measure(rounds: int, as_json: bool) -> None:
    """Let both work in turns and print the table."""
    sides = {"simulated": Side(SIMULATED), "by hand": Side(BY_HAND)}
    devices = {"simulated": "", "by hand": [f"CPU:{i}" for i in range(4)]}
    ops = {"simulated": OPS.format(device="/gpu:1"), "by hand": OPS.format(device="/cpu:1")}
    work = {"epoch of fit": dict.fromkeys(SIDES, EPOCH), "5,000 ops under tf.device": ops}
    figures: dict[tuple[str, str], list[tuple[float, float]]] = {(what, side): [] for what in work for side in SIDES}
    try:
        for name, side in sides.items():
            assert side.run(PREPARE.format(devices=devices[name])) == "ready\n"
            side.run(ops[name])
        for turn in range(rounds):
            for name in SIDES if turn % 2 else reversed(SIDES):  # what drifts, drifts for both
                for what, code in work.items():
                    wall, cpu = map(float, sides[name].run(code[name]).split())
                    figures[what, name].append((wall, cpu))
    finally:
        for side in sides.values():
            side.end()
    rows = [Row(f"{what}, {side}, CPU", [cpu for _, cpu in figures[what, side]], "s", 3) for what, side in figures]
    ratios = {
        f"{what}, {kind}": statistics.median(f[i] for f in figures[what, "simulated"])
        / statistics.median(f[i] for f in figures[what, "by hand"])
        for what in work
        for i, kind in enumerate(("wall", "CPU"))
    }
    others = "; ".join(f"{what} {ratio:.3f}" for what, ratio in ratios.items() if what != "epoch of fit, CPU")
    report(rows, ratios["epoch of fit, CPU"], f"CPU of an epoch, simulated to by hand; {others}", as_json)


if __name__ == "__main__":
    asked = arguments(__doc__)
    measure(6 if asked.quick else 24, asked.json)
