"""Whether training inside the sandbox costs more than outside: the same Keras fit in a session and in bare Python.

Both live through the whole run and take turns, one epoch each, with the same code and thread settings; the rest of
the machine disturbs both alike. Goal: within 2 %.

    python benchmarks/sandbox_training.py [--quick] [--json]
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from harness import PLAIN_ENVIRONMENT, Row, arguments, first_words, report, supervisor
from session_memory import FOUR_DEVICES

PREPARE = """
import time, numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MirroredStrategy({devices})
with strategy.scope():
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.random.rand(4096, 28, 28, 1).astype("float32"), np.random.randint(0, 10, 4096)
_ = model.fit(x, y, batch_size=128, verbose=0)
print("ready", flush=True)
"""
EPOCH = """
wall, cpu = time.perf_counter(), time.process_time()
_ = model.fit(x, y, batch_size=128, verbose=0)
print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
"""
_LOOP = "import sys\nfor line in sys.stdin: exec(eval(line))"


async def measure(rounds: int, as_json: bool) -> None:
    """Let both train in turns and print the table."""
    devices = [f"CPU:{i}" for i in range(4)]
    bare = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", _LOOP], stdin=-1, stdout=-1, stderr=-3, text=True, env=PLAIN_ENVIRONMENT
    )

    def outside(code: str) -> str:
        assert bare.stdin
        assert bare.stdout
        bare.stdin.write(repr(code) + "\n")
        bare.stdin.flush()
        return bare.stdout.readline()

    times: dict[str, list[tuple[float, float]]] = {"inside": [], "outside": []}
    try:
        async with supervisor(warm=1) as lockstep:
            session, words, _ = await first_words(lockstep.client, PREPARE.format(devices=""))
            assert words == outside(FOUR_DEVICES + PREPARE.format(devices=devices)) == "ready\n"
            for turn in range(2 * rounds):
                inside = turn % 4 in (0, 3)  # in out out in: what drifts, drifts for both
                words = (await first_words(lockstep.client, EPOCH, session))[1] if inside else outside(EPOCH)
                wall, cpu = map(float, words.split())
                times["inside" if inside else "outside"].append((wall, cpu))
    finally:
        bare.kill()
        bare.wait()
    names = {"inside": "epoch in a Lockstep session", "outside": "epoch in bare Python"}
    rows = [Row(f"{names[side]}, {kind}", [t[i] for t in times[side]], "s", 3)
            for i, kind in enumerate(("wall", "CPU")) for side in times]  # fmt: skip
    print_ratio = rows[2].median / rows[3].median
    wall_ratio = rows[0].median / rows[1].median
    report(rows, print_ratio, f"CPU inside to outside; wall {wall_ratio:.3f}", as_json)


if __name__ == "__main__":
    asked = arguments(__doc__)
    asyncio.run(measure(4 if asked.quick else 16, asked.json))
