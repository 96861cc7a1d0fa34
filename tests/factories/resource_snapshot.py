"""What a supervisor has on the machine, seen from outside: two looks tell what something has left behind.

Only what belongs to this one supervisor counts, so that others may work on the machine meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path

import psutil

from tests.factories.real_supervisor import RealSupervisor

_CLEANUP_TIMEOUT_S = 20.0
"""How long it may take until what has ended is gone from the machine."""
_VARIES = re.compile(r"[0-9a-f]{12}|\d+")
"""Names of sandboxes and numbers of sockets: as many of each kind must be left, not the same ones."""
_PER_KERNEL = 2
"""A kernel at rest is two processes: PID 1 of its sandbox and the kernel itself."""
_POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Of asyncio's pool. Without cgroups, the supervisor measures in them, and they stay."""
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock")

MAX_GROWTH = {"supervisor_bytes": 48 * 2**20, "zygote_bytes": 4 * 2**20}
"""How much larger a process may be than at the first look, in bytes: an allocator does not give everything back."""


@dataclass(frozen=True)
class ResourceSnapshot:
    """One snapshot. Once all sessions have ended, counts may not have grown, and the two sizes only slightly."""

    warm_kernels: int
    zygotes: tuple[tuple[int, float], ...]
    """Number and time of birth of each."""
    processes: int
    """Of sessions, besides those of the kernels that wait or are meant to stay."""
    sandboxes: int
    """Folders of sandboxes, likewise."""
    cgroups: int
    """Groups of sandboxes, one for each controller, likewise."""
    supervisor_descriptors: Counter[str]
    zygote_descriptors: Counter[str]
    supervisor_threads: int
    zygote_threads: int
    mounts: Counter[str]
    """Mount points that the zygote sees, and those of the host below the supervisor's own folders."""
    files: tuple[str, ...]
    """Of the sessions' user, in folders that all users of the machine share, and beside the sandboxes' own."""
    supervisor_bytes: int
    zygote_bytes: int

    def left_behind(self, before: ResourceSnapshot) -> list[str]:
        """Describe what exists now and did not exist ``before``; empty if nothing does."""
        found = []
        for name in (field.name for field in fields(self)):
            was, now = getattr(before, name), getattr(self, name)
            match was:
                case Counter():
                    found += [f"{name}: {kind} {was[kind]} -> {now[kind]}" for kind in now - was]
                case tuple():
                    found += [f"{name}: {one}" for one in sorted(set(now) - set(was))]
                case int() if now - was > MAX_GROWTH.get(name, 0):
                    found.append(f"{name}: {was:,} -> {now:,}")
        return found

    def least(self, other: ResourceSnapshot) -> ResourceSnapshot:
        """The minimum of each value, because short-lived resources do not count."""
        smaller = {
            name: was & now if isinstance(was, Counter) else min(was, now)
            for name in (field.name for field in fields(self))
            if isinstance(was := getattr(self, name), Counter | int)
            for now in (getattr(other, name),)
        }
        return replace(self, **smaller)


def take_snapshot(node: RealSupervisor, sessions: int = 0) -> ResourceSnapshot:
    """Count everything except the resources of this many idle sessions, which stay. The supervisor must be up."""
    warm = node.health()["warm_kernels"]
    kernels = warm + sessions
    zygotes = node.zygotes()
    supervisor = psutil.Process(node.pid)
    groups = node.cgroups()
    return ResourceSnapshot(
        warm_kernels=warm,
        zygotes=tuple(sorted((z.pid, z.create_time()) for z in zygotes)),
        processes=len(node.processes()) - len(zygotes) - _PER_KERNEL * kernels,
        sandboxes=sum(1 for top in node.folders() if top.is_dir() for _ in top.iterdir()) - kernels,
        cgroups=sum(1 for base in groups for path in base.iterdir() if path.is_dir()) - len(groups) * kernels,
        supervisor_descriptors=_descriptors(node.pid, str(node.socket)),
        zygote_descriptors=sum((_descriptors(z.pid) for z in zygotes), Counter()),
        supervisor_threads=max(1, supervisor.num_threads() - (0 if groups else _POOL_THREADS)),
        zygote_threads=sum(z.num_threads() for z in zygotes),
        mounts=sum((_mounts(z.pid) for z in zygotes), _mounts(node.pid, below=node.folder)),
        files=_files(node),
        supervisor_bytes=supervisor.memory_info().rss,
        zygote_bytes=sum(z.memory_info().rss for z in zygotes),
    )


BaselineSnapshots = dict[tuple[int, int, int], ResourceSnapshot]
"""By process number of the supervisor, sessions that stay, and kernels that wait: the least that was ever seen."""


def wait_for_cleanup(node: RealSupervisor, first_looks: BaselineSnapshots, sessions: int = 0) -> ResourceSnapshot:
    """Wait until everything that ended is gone; fails with a list of the rest otherwise."""
    deadline = time.monotonic() + _CLEANUP_TIMEOUT_S
    while True:
        now, first, left = None, None, ["it is not at rest"]
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):  # it ended meanwhile
            now = take_snapshot(node, sessions)
        if now and _is_idle(now):
            key = node.pid, sessions, now.warm_kernels
            first = first_looks.setdefault(key, now)
            left = now.left_behind(first)
            if not left:
                first_looks[key] = first.least(now)
                return now
        assert node.alive, node.log.read_text()[-3000:]
        assert time.monotonic() < deadline, f"{left}\n{now}\n{node.processes()}\n{node.log.read_text()[-3000:]}"
        time.sleep(0.05)


def _is_idle(now: ResourceSnapshot) -> bool:
    return now.warm_kernels >= 1 and len(now.zygotes) >= 1 and not (now.processes or now.sandboxes or now.cgroups)


def _descriptors(pid: int, left_out: str = "") -> Counter[str]:
    """Open descriptors by kind; the connections of clients at ``left_out`` do not count."""
    paths = _paths_of_sockets(pid)
    kinds: Counter[str] = Counter()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(fd.readlink())
            path = paths.get(target.removeprefix("socket:[").removesuffix("]"), "")
            if not (left_out and path == left_out):
                kinds[_VARIES.sub("N", path or target)] += 1
    return kinds


def _paths_of_sockets(pid: int) -> dict[str, str]:
    lines = [line.split() for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]]
    return {line[6]: line[7] for line in lines if len(line) > 7}


def _mounts(pid: int, below: Path | None = None) -> Counter[str]:
    points = [line.split()[4] for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    return Counter(point for point in points if below is None or point.startswith(str(below)))


def _files(node: RealSupervisor) -> tuple[str, ...]:
    if os.geteuid() in node.uids:
        return ()  # nobody can tell whose they are
    found = [path for folder in _SHARED_FOLDERS for path in _entries(Path(folder)) if _owner(path) in node.uids[1:]]
    found += [path for path in node.folders() if not path.name.startswith("lockstep-node-")]
    found += [path for path in node.data.rglob("*") if _owner(path) in node.uids[1:]]
    return tuple(sorted(map(str, found)))


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _owner(path: Path) -> int:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return -1
