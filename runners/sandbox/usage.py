"""Watches the resource usage of a session: during runs, and less often between runs.

With a cgroup, the kernel enforces the memory limit, and the watcher sleeps until the CPU time could be used up. Without
one, it polls /proc, which is slower and less exact, but always possible: the CPU time of every process in the sandbox,
its private and shared memory, and the files in its folders. Each run gets the full CPU time; so does the time between
two runs.
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
"""How often it polls without a cgroup; between runs, it polls all sessions of a node together, at the cost of one."""
_SOONEST_S, _LATEST_S = 0.25, 300.0
"""The shortest and longest time between two checks with a cgroup."""
_TABLE_HOLDS_S = 0.1
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessEntry(NamedTuple):
    """One entry of the process table."""

    pid: int
    parent: int
    cpu_s: float
    """Its own CPU time, and that of its children that have ended and been waited for."""


class ProcessTable:
    """All processes of the machine, read at most ten times a second for all callers. Used from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._children: dict[int, list[ProcessEntry]] = {}
        self._processes: dict[int, ProcessEntry] = {}

    def tree(self, root: int) -> list[ProcessEntry]:
        """A process and its descendants; empty if it is gone."""
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
    """Anonymous and shared memory of a process, in bytes, including memory shared with others. Cheap to read."""
    return _sum_of(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:"))


def proportional_bytes(pid: int) -> int:
    """Private memory of a process and its proportion of shared memory, in bytes. Expensive to read."""
    rollup = f"/proc/{pid}/smaps_rollup"
    # Shared memory that only this process maps counts as private, too: take the larger of the two, not their sum.
    return max(_sum_of(rollup, ("Private_Dirty:",)), _sum_of(rollup, ("Pss_Shmem:",))) + _sum_of(rollup, ("SwapPss:",))


def _sum_of(file: str, names: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError, ValueError):
        return (
            sum(int(line.split()[1]) for line in Path(file).read_text().splitlines() if line.startswith(names)) * 1024
        )
    return 0


class UsageWatcher:
    """An async context manager that watches a sandbox.

    Attributes:
        exceeded: set when a limit is reached, until the next run begins or the current one ends.
        met: the limit that was reached.
        peak_bytes: the most memory seen since the run began; None if a cgroup counts it better.
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
        """Start a run, with the full CPU time and a new memory peak."""
        self._sandbox.group.reset_peak()
        self.peak_bytes = None
        self._turn(in_a_run=True)

    def end_run(self) -> None:
        """End the run, whatever it has left behind."""
        self._turn(in_a_run=False)

    def _turn(self, *, in_a_run: bool) -> None:
        self._in_a_run = in_a_run
        self._turns += 1
        self._cpu_s_before = self._sandbox.group.facts().cpu_s  # without a cgroup: at the next check
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
            except SandboxGone:  # if it is only slow to respond, the next check will tell
                pause_s = self._pause_s()
            except Exception:  # whatever it was: an unwatched session would have no limits
                if not said:
                    log.exception("sandbox could not be watched; continuing", sandbox=self._sandbox.name)
                    said = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._new_turn.wait()

    async def _look(self) -> int | None:
        """Read the CPU time; returns memory in bytes, or None if a cgroup limits it."""
        counted = self._sandbox.group.facts().cpu_s
        if counted is not None:
            self._cpu_s = counted
        if counted is not None and self._counts_memory:
            return None
        await self._sandbox.ask_usage()
        cpu_s, memory = await asyncio.to_thread(self._add_up)
        if counted is None:  # the time of a process that nobody waited for disappears with it: keep what was counted
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
