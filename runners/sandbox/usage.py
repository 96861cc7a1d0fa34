"""Watches the resource usage of a session: during runs, and less often between runs.

With a cgroup, the kernel enforces the memory limit, and the watcher sleeps until the CPU time could be used up. Without
one, it polls /proc, which is slower and less exact, but always possible: the CPU time of every process in the sandbox,
its private and shared memory and page tables, and the files in its folders. Telling private memory from shared takes
the kernel long, so it is done for a hundredth of the time, and whenever all memory together exceeds the limit. It needs
no answer from inside. A sandbox that exceeds its memory, or that cannot be read twice in a row, is ended through its
pidfd. Each run gets the full CPU time; so does the time between two runs.

With or without one, it counts sockets. Some of what waits in them is in nobody's memory: answers of netlink, copies of
sent packets with the time, half of a datagram, all data of connections that nobody has accepted. The number of sockets
limits all of that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

import structlog

from runners.config.settings import Limits, MiB
from runners.sandbox.handle import Sandbox, SandboxGone
from runners.wire.protocol import LimitName

log = structlog.get_logger()

_IN_A_RUN_S, _BETWEEN_RUNS_S = 0.25, 5.0
"""How often it polls without a cgroup; between runs, it polls all sessions of a node together, at the cost of one."""
_SOONEST_S, _LATEST_IN_A_RUN_S, _LATEST_S = 0.25, 0.5, 1.0
"""The shortest and longest time between two checks with a cgroup. A program can fill a gigabyte of sockets a second."""
_TABLE_HOLDS_S = 0.1
_SHARE_OF_EXACT_LOOKS = 0.01
"""Of the time of a run, for telling private memory from shared while neither can exceed the limit."""
_MOST_MISSED = 2
"""Consecutive failures to read the usage of a sandbox that nothing else limits, before it is ended."""
_ENDING = ("memory", "sockets")
"""Limits that end the sandbox at once."""
_OPEN = re.compile(r"^sockets: used (\d+)", re.MULTILINE)
_IN_USE = re.compile(r"^(?:TCP|UDP)6?: inuse (\d+)", re.MULTILINE)
_UNIX = re.compile(r"^UNIX\S* +\d+ +(\d+)", re.MULTILINE)
_KILOBYTES = re.compile(r"^(\w+):[ \t]+(\d+) kB$", re.MULTILINE)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessEntry(NamedTuple):
    pid: int
    parent: int
    begun: int
    """When it began, in ticks since the machine started: process IDs are used again."""
    own_s: float
    """Its CPU time."""
    waited_s: float
    """The CPU time of its children that have ended and been waited for, and of theirs."""


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
            if time.monotonic() - self._read_at > _TABLE_HOLDS_S or root not in self._processes:  # it may be new
                self._read()
            found = [self._processes[root]] if root in self._processes else []
            for process in found:
                found.extend(self._children.get(process.pid, ()))
            return found

    def _read(self) -> None:
        self._processes, self._children = {}, {}
        with os.scandir("/proc") as entries:  # Path and decoding take as long as half of the rest
            names = [entry.name for entry in entries if entry.name.isdigit()]
        for name in names:
            try:
                stat = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    fields = os.read(stat, 4096).rpartition(b")")[2].split()
                finally:
                    os.close(stat)
            except OSError:
                continue
            own, system, waited, waited_system, begun = (int(fields[n]) for n in (11, 12, 13, 14, 19))
            process = ProcessEntry(
                int(name),
                int(fields[1]),
                begun,
                (own + system) / _TICKS_PER_S,
                (waited + waited_system) / _TICKS_PER_S,
            )
            self._processes[process.pid] = process
            self._children.setdefault(process.parent, []).append(process)
        self._read_at = time.monotonic()


_TABLE = ProcessTable()


class CpuCounter:
    """Adds up the CPU time of a sandbox. It keeps that of processes which ended and that nobody waited for."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._seen: dict[tuple[int, int], float] = {}
        self._ended_s = 0.0
        """The CPU time of processes that are gone, as last seen."""

    def update(self, tree: list[ProcessEntry]) -> None:
        """Count what the processes have used up to now."""
        seen = {(process.pid, process.begun): process.own_s for process in tree}
        self._ended_s += sum(own_s for process, own_s in self._seen.items() if process not in seen)
        self._seen = seen
        alive_s = sum(seen.values())
        # The first misses those that nobody waited for; the second those that came and went between two looks.
        self.cpu_s = max(self.cpu_s, alive_s + sum(process.waited_s for process in tree), alive_s + self._ended_s)


def resident_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process and its page tables, in bytes, including memory shared with others.

    Cheap to read, by everybody.
    """
    held = _lines_of(_living_thread(pid) / "status")
    return sum(held.get(name, 0) for name in ("RssAnon", "RssShmem", "VmSwap", "VmPTE"))


class ExactMemory(NamedTuple):
    """What a process holds, in bytes, with its page tables."""

    own: int
    """Without what others hold as well, as far as that can be told."""
    proportional: int
    """With its proportion of what it shares, be it with the zygote or with its own children."""


def exact_memory(pid: int) -> ExactMemory:
    """The memory of a process without what others hold, and with its proportion of that. Expensive to read.

    Raises:
        PermissionError: it may not be read, as for a program without read permission.
    """
    thread = _living_thread(pid)
    held = _lines_of(thread / "smaps_rollup")  # for each time, Linux walks all pages
    anonymous, mapped = held.get("Pss_Anon", 0), held.get("Pss_Shmem", 0)
    swapped_and_tables = held.get("SwapPss", 0) + _lines_of(thread / "status").get("VmPTE", 0)
    # Shared memory that only this process maps is private, too: take the larger of the two, not their sum.
    own = max(held.get("Private_Dirty", 0), mapped)
    return ExactMemory(own + swapped_and_tables, max(own, anonymous + mapped) + swapped_and_tables)


def _living_thread(pid: int) -> Path:
    """The folder in /proc that tells of the memory of a process: its own, or that of a thread if the first has ended.

    From then on the process looks like one that has ended, with all of its memory.
    """
    process = Path("/proc", str(pid))
    if not _has_memory(process):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return next(filter(_has_memory, (process / "task").iterdir()), process)
    return process


def _has_memory(thread: Path) -> bool:
    return "\nVmPTE:" in _content_of(thread / "status")


def _lines_of(file: Path) -> dict[str, int]:
    """The lines of a file that end with kB, in bytes; empty if the process is gone. Raises PermissionError."""
    return {name: int(kilobytes) * 1024 for name, kilobytes in _KILOBYTES.findall(_content_of(file))}


def has_too_many_sockets(pid: int, most: int, proc: Path = Path("/proc")) -> bool:
    """Whether the network namespace of a process has more than ``most`` TCP, UDP and netlink sockets.

    Some belong to no process, such as connections that nobody has accepted, and closed ones are in no table any more.
    Unix sockets do not count: what waits in them is in their session's memory. Only the kernel's own count of them is
    believed: the list of them has their names in it, and a name may have line breaks. Cheap to read, by everybody.
    """
    network = proc / str(pid) / "net"
    told = "".join(_content_of(network / name) for name in ("sockstat", "sockstat6"))
    in_tables = sum(map(int, _IN_USE.findall(told)))
    open_ones = sum(map(int, _OPEN.findall(told)))
    if in_tables <= most and open_ones > most:
        open_ones -= sum(map(int, _UNIX.findall(_content_of(network / "protocols"))))
    return max(in_tables, open_ones) > most


def _content_of(file: Path) -> str:
    """The content of a file; empty if there is none, or its process is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return file.read_text()
    return ""


def _total_of(exact: Iterable[ExactMemory], of_zygote: int) -> int:
    """The memory of processes together, of which at most ``of_zygote`` is the zygote's.

    What they share counts only above that: which of it is the zygote's cannot be told.
    """
    every = list(exact)
    return max(sum(each.own for each in every), sum(each.proportional for each in every) - of_zygote)


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
        self._too_many_sockets = False
        self._counter = CpuCounter()
        self._shared: dict[int, int] = {}
        """How much of the memory of each process did not count at the last exact look."""
        self._next_exact_look = float("-inf")
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

    async def memory_bytes(self) -> int | None:
        """The sandbox's memory now, without what it shares with others; None if it is gone. Expensive to read."""
        try:
            return await asyncio.to_thread(self._measure, self._sandbox.file_bytes())
        except SandboxGone:
            return None

    def _measure(self, files: int) -> int:
        exact = [self._exact_memory(process.pid) for process in _TABLE.tree(self._sandbox.pid)]
        return files + _total_of(exact, resident_bytes(self._sandbox.pid))

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
        if self.met not in _ENDING:  # else the reason is still to be told
            self.met = None
            self.exceeded.clear()
        self._new_turn.set()

    async def _watch(self) -> None:
        missed, said = 0, False
        while not self._sandbox.gone.is_set():
            self._new_turn.clear()
            turn = self._turns
            pause_s = _SOONEST_S
            try:
                memory = await self._look()
                missed = 0
                if turn == self._turns:
                    self._compare(memory)
                pause_s = self._pause_s()
            except Exception as e:  # whatever it was: an unwatched session would have no limits
                missed += 1
                if not said and not isinstance(e, SandboxGone):
                    log.exception("sandbox could not be watched; continuing", sandbox=self._sandbox.name)
                    said = True
                if missed >= _MOST_MISSED and not self._counts_memory:
                    log.error("sandbox ended: its use of memory is unknown", sandbox=self._sandbox.name)
                    self._sandbox.end_at_once()
                    return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._new_turn.wait()

    async def _look(self) -> int | None:
        """Read the CPU time and whether there are too many sockets. Nothing is asked of the inside.

        Returns memory in bytes, or None if a cgroup limits it.
        """
        counted = self._sandbox.group.facts().cpu_s
        self._too_many_sockets = has_too_many_sockets(self._sandbox.pid, self._limits.sockets)
        if counted is not None:
            self._cpu_s = counted
        if counted is not None and self._counts_memory:
            return None
        files = 0 if self._counts_memory else self._sandbox.file_bytes()
        memory = await asyncio.to_thread(self._add_up, files)
        if counted is None:
            self._cpu_s = self._counter.cpu_s
        return None if self._counts_memory else memory

    def _add_up(self, files: int) -> int:
        """Count the CPU time; returns the memory of all processes and ``files``. Called in a thread.

        Between two exact looks, a process is taken to share as much as at the last one, and a new one as much as PID 1.
        """
        tree = _TABLE.tree(self._sandbox.pid)
        if not tree:
            raise SandboxGone("PID 1 is not in /proc")
        self._counter.update(tree)
        resident = {process.pid: resident_bytes(process.pid) for process in tree}
        usual = self._shared.get(self._sandbox.pid, 0)
        most = files + sum(resident.values()) - usual  # PID 1 runs no learner code, so what it shares stays shared
        if most <= self._limits.memory_mb * MiB and not (self._in_a_run and time.monotonic() >= self._next_exact_look):
            return files + sum(max(held - self._shared.get(pid, usual), 0) for pid, held in resident.items())
        began_s = time.thread_time()
        exact = {pid: self._exact_memory(pid) for pid in resident}
        took_s = time.thread_time() - began_s
        self._next_exact_look = time.monotonic() + took_s / _SHARE_OF_EXACT_LOOKS
        self._shared = {pid: max(held - exact[pid].own, 0) for pid, held in resident.items()}
        return files + _total_of(exact.values(), resident[self._sandbox.pid])

    def _exact_memory(self, pid: int) -> ExactMemory:
        try:
            return exact_memory(pid)
        except PermissionError:  # PID 1 runs no learner code, and shares nearly all of its memory with the zygote
            held = 0 if pid == self._sandbox.pid else resident_bytes(pid)
            return ExactMemory(held, held)

    def _compare(self, memory: int | None) -> None:
        if self._cpu_s_before is None:
            self._cpu_s_before = self._cpu_s
        if memory is not None and self._in_a_run:
            self.peak_bytes = max(self.peak_bytes or 0, memory)
        if self._cpu_s - self._cpu_s_before >= self._limits.cpu_s:
            self.met = "cpu"
        elif memory is not None and memory > self._limits.memory_mb * MiB:
            self.met = "memory"
        elif self._too_many_sockets:
            self.met = "sockets"
        if self.met:
            self.exceeded.set()
        if self.met in _ENDING:  # no time for PID 1 to do it: everything inside competes with it
            self._sandbox.end_at_once()

    def _pause_s(self) -> float:
        if self._counts_cpu and self._counts_memory:
            left_s = self._limits.cpu_s - (self._cpu_s - (self._cpu_s_before or 0.0))
            latest_s = _LATEST_IN_A_RUN_S if self._in_a_run else _LATEST_S
            return min(max(left_s / self._cores, _SOONEST_S), latest_s)
        if self._in_a_run:
            return _IN_A_RUN_S
        return _BETWEEN_RUNS_S - time.monotonic() % _BETWEEN_RUNS_S
