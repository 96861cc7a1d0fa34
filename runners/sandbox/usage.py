"""What a session uses, watched for its whole life: in a run, and more slowly between runs.

Where a cgroup counts, the kernel keeps memory within its limit by itself, and CPU time need not be looked at before it
can be used up: the watch sleeps until then. Without a cgroup it looks into /proc, which is slower and blunter, and only
what a supervisor can always do: the CPU time of every process in the sandbox, its private and its shared memory, and
the files in its folders. Each run has the whole of the CPU time; so has the time after it, until the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

import structlog

from runners.config.settings import Limits, MiB
from runners.sandbox.handle import Sandbox, SandboxGone
from runners.wire.protocol import LimitName

log = structlog.get_logger()

_IN_A_RUN_S, _BETWEEN_RUNS_S = 0.25, 5.0
"""How often it looks where no cgroup counts; between runs all sessions of a node at once, which costs one look."""
_SOONEST_S, _LATEST_S = 0.25, 300.0
"""How soon and how late it looks again where a cgroup counts."""
_TABLE_HOLDS_S = 0.1
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessEntry(NamedTuple):
    """One line of the table of processes."""

    pid: int
    parent: int
    cpu_s: float
    """Its own CPU time and that of its children that have ended and been waited for."""


class ProcessTable:
    """All processes of the machine, read at most ten times a second whoever asks. Used from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._children: dict[int, list[ProcessEntry]] = {}
        self._processes: dict[int, ProcessEntry] = {}

    def tree(self, root: int) -> list[ProcessEntry]:
        """A process and all that came from it; empty if it is gone."""
        with self._lock:
            if time.monotonic() - self._read_at > _TABLE_HOLDS_S:
                self._read()
            found = [self._processes[root]] if root in self._processes else []
            for process in found:
                found.extend(self._children.get(process.pid, ()))
            return found

    def _read(self) -> None:
        self._processes, self._children = {}, {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            process = ProcessEntry(int(folder.name), int(fields[1]), sum(map(int, fields[11:15])) / _TICKS_PER_S)
            self._processes[process.pid] = process
            self._children.setdefault(process.parent, []).append(process)
        self._read_at = time.monotonic()


_TABLE = ProcessTable()


def resident_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process, in bytes, what it shares with others included. Cheap to ask."""
    return _sum_of(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:"))


def proportional_bytes(pid: int) -> int:
    """Memory of a process that nobody else has, and its part of what is shared, in bytes. Dear to ask."""
    rollup = f"/proc/{pid}/smaps_rollup"
    # Shared memory that only this process has mapped is private too: the greater of the two, not their sum.
    return max(_sum_of(rollup, ("Private_Dirty:",)), _sum_of(rollup, ("Pss_Shmem:",))) + _sum_of(rollup, ("SwapPss:",))


def _sum_of(file: str, names: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError, ValueError):
        return (
            sum(int(line.split()[1]) for line in Path(file).read_text().splitlines() if line.startswith(names)) * 1024
        )
    return 0


class UsageWatcher:
    """An async context that watches a sandbox.

    Attributes:
        exceeded: set while a limit is met, until the next run begins or the present one ends.
        met: which.
        peak_bytes: the most memory seen since the run began; None where a cgroup counts better.
    """

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        self.exceeded = asyncio.Event()
        self.met: LimitName | None = None
        self.peak_bytes: int | None = None
        self._sandbox = sandbox
        self._limits = limits
        counted = sandbox.group.facts()
        self._counts_cpu, self._counts_memory = counted.cpu_s is not None, counted.peak_bytes is not None
        self._cores = limits.cpu_cores if self._counts_cpu else float(os.cpu_count() or 1)
        self._in_a_run = False
        self._cpu_s = 0.0
        self._cpu_s_before: float | None = None
        self._new_turn = asyncio.Event()
        self._turns = 0
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watcher = asyncio.create_task(self._watch(), name=f"usage-{self._sandbox.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watcher:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)

    def begin_run(self) -> None:
        """A run begins: it has the whole of the CPU time, and memory a new peak."""
        self._sandbox.group.reset_peak()
        self.peak_bytes = None
        self._turn(in_a_run=True)

    def end_run(self) -> None:
        """The run is over, whatever it has left behind."""
        self._turn(in_a_run=False)

    def _turn(self, *, in_a_run: bool) -> None:
        self._in_a_run = in_a_run
        self._turns += 1
        self._cpu_s_before = self._sandbox.group.facts().cpu_s  # without a cgroup: at the next look
        self.met = None
        self.exceeded.clear()
        self._new_turn.set()

    async def _watch(self) -> None:
        said = False
        while not self._sandbox.gone.is_set():
            self._new_turn.clear()
            turn = self._turns
            pause_s = _SOONEST_S
            try:
                memory = await self._look()
                if turn == self._turns:
                    self._compare(memory)
                pause_s = self._pause_s()
            except SandboxGone:  # if it is only slow to answer, the next look will tell
                pause_s = self._pause_s()
            except Exception:  # whatever it was: an unwatched session has no limits
                if not said:
                    log.exception("sandbox could not be watched; going on", sandbox=self._sandbox.name)
                    said = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._new_turn.wait()

    async def _look(self) -> int | None:
        """Take the CPU time; returns memory in bytes, or None where a cgroup sees to it."""
        counted = self._sandbox.group.facts().cpu_s
        if counted is not None:
            self._cpu_s = counted
        if counted is not None and self._counts_memory:
            return None
        await self._sandbox.ask_usage()
        cpu_s, memory = await asyncio.to_thread(self._add_up)
        if counted is None:  # a process that nobody waited for takes its time along: what was seen stays seen
            self._cpu_s = max(self._cpu_s, cpu_s)
        return None if self._counts_memory else memory + self._sandbox.file_bytes

    def _add_up(self) -> tuple[float, int]:
        tree = _TABLE.tree(self._sandbox.pid)
        memory = sum(resident_bytes(p.pid) for p in tree)
        if self._in_a_run or memory + self._sandbox.file_bytes > self._limits.memory_mb * MiB:
            memory = sum(proportional_bytes(p.pid) for p in tree)
        return sum(p.cpu_s for p in tree), memory

    def _compare(self, memory: int | None) -> None:
        if self._cpu_s_before is None:
            self._cpu_s_before = self._cpu_s
        if memory is not None and self._in_a_run:
            self.peak_bytes = max(self.peak_bytes or 0, memory)
        if self._cpu_s - self._cpu_s_before >= self._limits.cpu_s:
            self.met = "cpu"
        elif memory is not None and memory > self._limits.memory_mb * MiB:
            self.met = "memory"
        if self.met:
            self.exceeded.set()

    def _pause_s(self) -> float:
        if self._counts_cpu and self._counts_memory:
            left_s = self._limits.cpu_s - (self._cpu_s - (self._cpu_s_before or 0.0))
            return min(max(left_s / self._cores, _SOONEST_S), _LATEST_S)
        if self._in_a_run:
            return _IN_A_RUN_S
        return _BETWEEN_RUNS_S - time.monotonic() % _BETWEEN_RUNS_S
