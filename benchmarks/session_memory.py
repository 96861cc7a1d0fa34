"""How much memory a session has for itself, beside a plain Jupyter kernel that does the same.

Private memory is what no other process maps (Private_Clean, Private_Dirty and swap) over all processes of a sandbox;
beside it stands what its cgroup is charged with. Measured idle, and after a Keras fit on 4 replicas. The plain kernel
is idle with TensorFlow imported, and runs beside the zygote, so that library code is shared with it too.
Goal: 40 MB idle, 180 MB after the fit.

    python benchmarks/session_memory.py [--quick] [--json]
"""

from __future__ import annotations

import asyncio
import secrets

import psutil
from harness import (
    Row,
    arguments,
    cgroup_mb,
    first_words,
    plain_kernel,
    plain_words,
    private_mb,
    report,
    supervisor,
)

from runners.wire.client import RunnerClient
from runners.wire.protocol import SessionSpec

_SETTLE_S = 1.5
IMPORT = "import tensorflow as tf\nprint(tf.__name__)"
FOUR_DEVICES = """
import tensorflow as tf
cpu, = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
"""
FIT = """
import numpy as np, tensorflow as tf
strategy = tf.distribute.MirroredStrategy({devices})
with strategy.scope():
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.random.rand(2048, 28, 28, 1).astype("float32"), np.random.randint(0, 10, 2048)
history = model.fit(x, y, batch_size=128, epochs=2, verbose=0)
print(f"replicas: {{strategy.num_replicas_in_sync}}")
"""


async def of_lockstep(sessions: int) -> dict[str, list[float]]:
    """MB of each session: private and charged, idle and after the fit."""
    found: dict[str, list[float]] = {"idle": [], "idle, cgroup": [], "fit": [], "fit, cgroup": []}
    async with supervisor(warm=0) as lockstep:
        for _ in range(sessions):
            session = await _idle_session(lockstep.client)
            for state in ("idle", "fit"):
                if state == "fit":
                    await first_words(lockstep.client, FIT.format(devices=""), session)
                await asyncio.sleep(_SETTLE_S)
                (processes,) = lockstep.sandboxes()
                found[state].append(private_mb(processes))
                charged = cgroup_mb(processes[0])
                found[f"{state}, cgroup"] += [] if charged is None else [charged]
            await lockstep.client.end(session)
        return found


async def _idle_session(client: RunnerClient) -> str:
    name = secrets.token_hex(8)
    await client.request_session(name, SessionSpec(owner=name))
    for _ in range(600):
        if (await client.session(name)).state == "idle":
            return name
        await asyncio.sleep(0.05)
    raise SystemExit("the session did not start")


async def of_jupyter() -> tuple[float, float]:
    """Private MB of a plain kernel, idle and after the fit."""
    async with plain_kernel() as (client, pid):
        await plain_words(client, IMPORT, "tensorflow")
        await asyncio.sleep(_SETTLE_S)
        idle = private_mb([psutil.Process(pid)])
        devices = [f"CPU:{i}" for i in range(4)]
        await plain_words(client, FOUR_DEVICES + FIT.format(devices=devices), "replicas: 4")
        await asyncio.sleep(_SETTLE_S)
        return idle, private_mb([psutil.Process(pid)])


async def measure(sessions: int, peers: int, as_json: bool) -> None:
    """Measure both and print the table."""
    async with supervisor(warm=0):
        plain = [await of_jupyter() for _ in range(peers)]
    found = await of_lockstep(sessions)
    rows = [Row(f"Lockstep, {state}", figures, "MB", 1) for state, figures in found.items() if figures]
    rows += [Row("plain kernel, TensorFlow imported", [idle for idle, _ in plain], "MB", 1)]
    rows += [Row("plain kernel, fit", [fit for _, fit in plain], "MB", 1)]
    report(rows, rows[-2].median / rows[0].median, "idle plain kernels in the memory of one more idle session", as_json)


if __name__ == "__main__":
    asked = arguments(__doc__)
    asyncio.run(measure(*((2, 1) if asked.quick else (5, 3)), asked.json))
