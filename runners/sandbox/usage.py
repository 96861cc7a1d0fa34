"""Memory of a session where no cgroup counts it: looked up in /proc a few times a second while a run goes on.

Slower and blunter than a cgroup, and only what a supervisor can always do: add up the private memory of every process
in the sandbox and the files in its folders, and say when it is too much. Between runs nobody looks.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Self

import psutil

from runners.sandbox.host import Sandbox, SandboxGone
from runners.settings import Limits, MiB

_EVERY_S = 0.25
_PRIVATE = ("Private_Clean:", "Private_Dirty:", "Swap:")


def private_bytes(pid: int) -> int:
    """Private memory of a process and all that came from it, in bytes; processes that are gone count nothing."""
    try:
        root = psutil.Process(pid)
        pids = [pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.Error:
        return 0
    return sum(map(_private_of, pids))


def _private_of(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(_PRIVATE):
                total += int(line.split()[1]) * 1024
    return total


class MemoryWatch:
    """An async context that watches a sandbox's memory, unless its cgroup does.

    Attributes:
        exceeded: set when the limit was passed.
        peak_bytes: the most that was seen; None where a cgroup counts better.
    """

    def __init__(self, sandbox: Sandbox, limits: Limits) -> None:
        self.exceeded = asyncio.Event()
        self.peak_bytes: int | None = None
        self._sandbox = sandbox
        self._most = limits.memory_mb * MiB
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._sandbox.group.facts().bytes is None:
            self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(SandboxGone):
                self._sandbox.ask_usage()
            now = await asyncio.to_thread(private_bytes, self._sandbox.pid) + self._sandbox.file_bytes
            self.peak_bytes = max(self.peak_bytes or 0, now)
            if now > self._most:
                self.exceeded.set()
                return
            await asyncio.sleep(_EVERY_S)
