"""What the benchmarks of the runner share: a supervisor of their own, a plain Jupyter kernel as its peer, and a table.

Each benchmark measures both in one run. The machine may have other work: wall-clock times are next to the CPU time
of the processes concerned, and the load is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import start_new_async_kernel

from runners.wire.client import RunnerClient, RunnerUnavailable
from runners.wire.protocol import RunRequest, SessionSpec

FIRST_OUTPUT = """
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
print(f"Replicas: {strategy.num_replicas_in_sync}, {int(tf.constant(40) + 2)}")
"""
"""What a learner runs first: TensorFlow, the strategy of the lesson, an op."""
_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PLAIN_ENVIRONMENT = os.environ | _THREADS | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
"""The peer runs with the thread settings of a sandbox."""


@dataclass(frozen=True)
class Row:
    """One line of the table: figures of one kind, the best known by their median."""

    name: str
    figures: list[float]
    unit: str
    decimals: int = 0

    @property
    def median(self) -> float:
        """The figure in the middle."""
        return statistics.median(self.figures)

    @property
    def p95(self) -> float:
        """19 of 20 figures are no larger."""
        ordered = sorted(self.figures)
        return ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]

    def __str__(self) -> str:
        median, p95 = (f"{figure:8.{self.decimals}f} {self.unit}" for figure in (self.median, self.p95))
        return f"{self.name:44} median {median}   p95 {p95}   n {len(self.figures)}"


def report(rows: list[Row], ratio: float, meaning: str, as_json: bool) -> None:
    """Print the table, the ratio and what the ratio is."""
    if as_json:
        table = [{"name": r.name, "unit": r.unit, "median": r.median, "p95": r.p95, "n": len(r.figures)} for r in rows]
        print(json.dumps({"rows": table, "ratio": ratio, "ratio_is": meaning, "load": os.getloadavg()[0]}))
        return
    for row in rows:
        print(row)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"ratio: {ratio:.3g} ({meaning})")


def arguments(documentation: str | None) -> argparse.Namespace:
    """``--quick`` and ``--json``."""
    parser = argparse.ArgumentParser(description=(documentation or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    return parser.parse_args()


@dataclass(frozen=True)
class Supervisor:
    """A supervisor that runs, and its client."""

    process: psutil.Process
    client: RunnerClient
    socket: Path

    def zygotes(self) -> list[psutil.Process]:
        """The processes that sandboxes are forked from."""
        ours = [p for p in self.process.children(recursive=True) if _is_zygote(p)]
        return [p for p in ours if not _is_zygote(p.parent())]

    def sandboxes(self) -> list[list[psutil.Process]]:
        """The processes of each sandbox, PID 1 first."""
        return [[init, *init.children(recursive=True)] for z in self.zygotes() for init in z.children()]

    def cpu_s(self) -> float:
        """CPU seconds of the supervisor and of all that it has started and that lives, or was waited for."""
        total = 0.0
        for process in (self.process, *self.process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        return total


@contextlib.asynccontextmanager
async def supervisor(warm: int = 2, **settings: Any) -> AsyncIterator[Supervisor]:
    """Start one with these settings (``LOCKSTEP_*``), wait until it has its warm kernels, and end it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "supervisor.sock"
        command = [sys.executable, "-m", "runners.supervisor.server", "--socket", str(path), "--die-with-parent"]
        chosen = {"DATA_DIR": folder, "WARM_KERNELS": warm} | settings
        environment = os.environ | {f"LOCKSTEP_{name.upper()}": str(value) for name, value in chosen.items()}
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(command, stderr=log, env=environment)  # noqa: ASYNC220
        try:
            async with RunnerClient(path) as client:
                await ready(client, warm)
                yield Supervisor(psutil.Process(process.pid), client, path)
        finally:
            process.terminate()
            process.wait(30)


async def ready(client: RunnerClient, kernels: int) -> None:
    """Wait until the supervisor has its zygote and this many warm kernels."""
    for _ in range(1200):
        try:
            health = await client.health()
            if health.status == "ready" and health.warm_kernels >= kernels:
                return
        except RunnerUnavailable:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit("the supervisor did not become ready within two minutes")


async def first_words(client: RunnerClient, code: str, session: str | None = None) -> tuple[str, str, float]:
    """Run the code in a session, a new one if none is named, to the end of the run.

    Returns:
        The session's name, the first line of output, and the seconds until it was here.
    """
    session = session or secrets.token_hex(8)
    run, begun, first, words = secrets.token_hex(8), time.perf_counter(), None, ""
    await client.submit(RunRequest(id=run, session=session, spec=SessionSpec(owner=session), code=code))
    async for event in client.events(run):
        if event.kind == "text" and event.stream == "stdout" and first is None:
            first, words = time.perf_counter() - begun, event.text
        if event.kind == "finished":
            assert event.outcome == "ok", event
    assert first is not None, "the code printed nothing"
    return session, words, first


@contextlib.asynccontextmanager
async def plain_kernel() -> AsyncIterator[tuple[AsyncKernelClient, int]]:
    """A kernel as Jupyter starts it: its client and its process number."""
    manager, client = await start_new_async_kernel(env=PLAIN_ENVIRONMENT, kernel_name="python3", startup_timeout=300)
    try:
        yield client, manager.provisioner.process.pid
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def plain_words(client: AsyncKernelClient, code: str, awaited: str) -> None:
    """Run the code in a plain kernel until it prints what is awaited."""
    asked = client.execute(code)
    while True:
        message = await client.get_iopub_msg(timeout=600)
        if message["parent_header"].get("msg_id") != asked:
            continue
        if message["msg_type"] == "stream" and awaited in message["content"]["text"]:
            return
        assert message["msg_type"] != "error", message["content"]["traceback"]


def private_mb(processes: list[psutil.Process]) -> float:
    """Memory in MB that nobody else uses: clean, dirty and swapped."""
    keys = ("Private_Clean:", "Private_Dirty:", "Swap:")
    lines = (line.split() for p in processes for line in _smaps(p.pid))
    return sum(int(words[1]) for words in lines if words[0] in keys) * 1024 / 1e6


def cgroup_mb(process: psutil.Process) -> float | None:
    """Memory in MB that the process's cgroup is charged with, page tables and tmpfs included; None without one."""
    for line in Path(f"/proc/{process.pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "lockstep-" in path and controllers in ("", "memory"):
            root = Path("/sys/fs/cgroup", controllers, path.lstrip("/"))
            files = [f for n in ("memory.current", "memory.usage_in_bytes") if (f := root / n).exists()]
            if files:
                return int(files[0].read_text()) / 1e6
    return None


def _smaps(pid: int) -> Iterator[str]:
    yield from Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]


def _is_zygote(process: psutil.Process | None) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):  # or it is a zombie
        return process is not None and "runners.zygote.fork_server" in process.cmdline() and process.name() != "bwrap"
    return False
