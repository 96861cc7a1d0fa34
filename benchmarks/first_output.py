"""How long a learner waits for the first TensorFlow output of a new session, beside a plain Jupyter kernel.

Both run the same code in the same process environment, one after the other, in one run of this script. Lockstep's
time is from the request reaching the supervisor's socket to the first output event coming back over it, a new session
each time; Jupyter's is from ``start_kernel`` to the first output message. Prints both and ``ratio: N``.

    python benchmarks/first_output.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter_client.manager import start_new_async_kernel

from runners.client import RunnerClient, RunnerUnavailable
from runners.protocol import RunRequest, SessionSpec

CODE = """
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
print(f"Replicas: {strategy.num_replicas_in_sync}, {int(tf.constant(40) + 2)}")
"""
BETWEEN_S = 2.0
"""A pause between two sessions: one learner arrives after the other."""


async def of_lockstep(client: RunnerClient) -> float:
    """Seconds to the first output of one new session."""
    name = secrets.token_hex(8)
    request = RunRequest(id=name, session=name, spec=SessionSpec(owner=name), code=CODE)
    begun = time.perf_counter()
    first = None
    await client.submit(request)
    async for event in client.events(name):
        if event.kind == "text" and first is None:
            first = time.perf_counter() - begun
            assert event.text == "Replicas: 4, 42\n", event.text
    await client.end(name)
    assert first is not None
    return first


async def of_jupyter() -> float:
    """Seconds to the first output of one plain kernel, started as Jupyter starts it."""
    begun = time.perf_counter()
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    manager, client = await start_new_async_kernel(env=environment, kernel_name="python3")
    try:
        client.execute(CODE)
        while True:
            message = await client.get_iopub_msg(timeout=120)
            if message["msg_type"] == "stream" and "Replicas" in message["content"]["text"]:
                return time.perf_counter() - begun
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def ready(client: RunnerClient, kernels: int) -> None:
    """Wait until the supervisor has warm kernels."""
    for _ in range(1200):
        try:
            if (await client.health()).warm_kernels >= kernels:
                return
        except RunnerUnavailable:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit("the supervisor did not become ready within two minutes")


async def measure(sessions: int, peers: int) -> None:
    """Measure both and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "supervisor.sock"
        command = [sys.executable, "-m", "runners.server", "--socket", str(path), "--die-with-parent"]
        environment = os.environ | {"LOCKSTEP_DATA_DIR": folder}
        with (Path(folder) / "log").open("w") as log:
            supervisor = subprocess.Popen(  # noqa: ASYNC220
                command, stderr=log, env=environment
            )
        try:
            async with RunnerClient(path) as client:
                await ready(client, 2)
                warm = []
                for _ in range(sessions):
                    await asyncio.sleep(BETWEEN_S)
                    warm.append(await of_lockstep(client))
                supervisor.terminate()
        finally:
            supervisor.terminate()
            supervisor.wait(30)
    plain = [await of_jupyter() for _ in range(peers)]
    report("Lockstep, new session", warm)
    report("plain Jupyter kernel", plain)
    print(f"ratio: {statistics.median(plain) / statistics.median(warm):.0f}")


def report(name: str, seconds: list[float]) -> None:
    """One row: median, 95th percentile and number."""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    print(f"{name:24} median {statistics.median(ordered) * 1000:8.0f} ms   p95 {p95 * 1000:8.0f} ms   n {len(ordered)}")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    asyncio.run(measure(*((8, 2) if quick else (40, 5))))


if __name__ == "__main__":
    main()
