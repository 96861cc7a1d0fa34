"""cgroups: memory, processes and CPU of a whole session, limited and counted by the kernel.

Version 1 and version 2 are both supported. If neither is writable (a plain container, an unprivileged user without
delegation), ``detect`` says so and ``usage`` polls memory instead.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol

import structlog

from runners.config.settings import Limits, MiB
from runners.sandbox.linux import effective_user

log = structlog.get_logger()

_PERIOD_US = 100_000
_PREFIX = "lockstep-"
_IN_TCP_SOCKETS = "memory.kmem.tcp.limit_in_bytes"
_IN_SOCKETS = 8
"""With version 1, a session may have this fraction of its memory (a divisor) in sockets, in addition to the rest."""
_SHARE_OF_TCP = 4
"""With version 1, all sessions together may have this fraction of what the machine may have in TCP sockets (a
divisor): each socket may take a little more than the limit, and half is the machine's."""
_GUESSED_TCP = 12
"""Usually, TCP may take this fraction of a machine's memory (a divisor); a container does not show how much it is."""
_CONTROLLERS = "+memory +pids +cpu"
_LEAF = "supervisor"
"""With version 2, the group below a divided one that holds the processes that were in it."""
_MOST_MOVES = 10
"""How often the processes of a group are moved into its leaf: while they move, they may start others in the group."""


@dataclass(frozen=True, slots=True)
class CgroupStats:
    """The counters of a group since its creation; None for one that does not exist or cannot be read."""

    oom_kills: int = 0
    forks_refused: int = 0
    peak_bytes: int | None = None
    """The most memory used since ``reset_peak``, swap included."""
    cpu_s: float | None = None
    """CPU time of all its present and past processes, in seconds."""


class SessionCgroup(Protocol):
    """The cgroup of one session. The supervisor creates, fills and removes it."""

    def add(self, pid: int) -> None:
        """Add a process, before it runs any learner code."""

    def facts(self) -> CgroupStats:
        """Read the counters. One that cannot be read, as in a group that is going away, is logged once and omitted."""

    def reset_peak(self) -> None:
        """Start a new peak, at the beginning of a run."""

    def kill(self) -> None:
        """Kill every process in it, if version 2 supports that (Linux 5.14)."""

    def remove(self) -> bool:
        """Delete the empty group. Returns False while a process is left in it."""


class CgroupManager(Protocol):
    """Creates groups below one parent."""

    version: int

    def create(self, name: str, limits: Limits) -> SessionCgroup:
        """Create a group with these limits. If that raises OSError, no group is left behind."""

    def sweep(self) -> None:
        """Delete groups that were not empty when they should have been removed."""

    def close(self) -> None:
        """Delete the parent."""


class NullCgroup:
    """Used if cgroups are not writable: limits and counts nothing."""

    def add(self, pid: int) -> None:
        """Do nothing."""

    def facts(self) -> CgroupStats:
        return CgroupStats()

    def reset_peak(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing."""

    def remove(self) -> bool:
        return True


class NullCgroupManager:
    version = 0

    def create(self, name: str, limits: Limits) -> NullCgroup:
        return NullCgroup()

    def sweep(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def detect() -> CgroupManager:
    """Find out which cgroups this process may create, by creating them."""
    attempts = (_V2Groups.make, _V1Groups.make)
    for attempt in attempts:
        with contextlib.suppress(OSError, KeyError, ValueError):
            return attempt()
    return NullCgroupManager()


def delegate(user: int) -> list[Path]:
    """Make a group for this process that ``user`` may divide.

    Returns:
        Its folders, which the process is to ``enter``, and which remain when it has ended; none where there are no
        cgroups.
    """
    for attempt in (_V2Groups.delegate, _V1Groups.delegate):
        with contextlib.suppress(OSError, KeyError):
            return attempt(user)
    return []


def enter(folders: Iterable[Path]) -> None:
    """Move this process to a group."""
    for folder in folders:
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def _hand_over(folder: Path, user: int) -> None:
    for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "tasks"):
        if (folder / name).exists():
            os.chown(folder / name, user, user)


def own_paths() -> dict[str, str]:
    """This process's cgroup for each controller; the empty name stands for version 2."""
    return parse_paths(Path("/proc/self/cgroup").read_text().splitlines())


def parse_paths(lines: Iterable[str]) -> dict[str, str]:
    """The same from the lines of a process's ``cgroup`` file."""
    paths: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def own_folders(controller: str) -> list[Path]:
    """Where this process's cgroup may be, the likeliest first: its own folder, then the root of the hierarchy.

    Args:
        controller: such as ``memory``; the empty name stands for version 2.

    Raises:
        OSError: the hierarchy is not mounted.
    """
    own = folder_of(controller, own_paths()[controller])
    found = [*([own] if own else []), *_mounted(controller)]
    if not found:
        raise OSError(f"no cgroups of {controller or 'version 2'} are mounted")
    return list(dict.fromkeys(found))


def missing_controllers(group: Path) -> list[str]:
    """Which of the controllers that limit sessions a group of version 2 does not have."""
    has = (group / "cgroup.controllers").read_text().split()
    return sorted(set(_CONTROLLERS.replace("+", "").split()).difference(has))


def folder_of(controller: str, path: str) -> Path | None:
    """The folder of the group that a process's ``cgroup`` file calls ``path``; None if it is not mounted."""
    return folder_in(_mounted(controller), path)


def folder_in(mounted: dict[Path, str], path: str) -> Path | None:
    """The same, below mount points with their roots. Pure.

    In a container without a cgroup namespace, the path of a group begins outside what is mounted there.
    """
    inside = (point / PurePath(path).relative_to(root) for point, root in mounted.items() if _is_in(path, root))
    return next(inside, None)


def _is_in(path: str, root: str) -> bool:
    return PurePath(path).is_relative_to(root) and ".." not in PurePath(path).parts


def _mounted(controller: str) -> dict[Path, str]:
    return mount_points(Path("/proc/self/mountinfo").read_text(), controller)


def mount_points(mounts: str, controller: str) -> dict[Path, str]:
    """Where a hierarchy is mounted, and which of its groups is there; from a ``mountinfo`` file (proc(5)). Pure."""
    found: dict[Path, str] = {}
    for line in mounts.splitlines():
        mount, _, filesystem = line.partition(" - ")
        root, point = mount.split()[3:5]
        kind, _, options = filesystem.split(maxsplit=2)
        found.pop(Path(point), None)  # the last mount on a folder hides the others
        if controller in options.split(",") if kind == "cgroup" else kind == "cgroup2" and not controller:
            found[Path(point)] = root
    return found


def most_in_sockets(tcp_mem: Path = Path("/proc/sys/net/ipv4/tcp_mem")) -> int:
    """How many bytes all sessions together may have in TCP and UDP sockets, where that is not part of their memory."""
    try:
        machine = int(tcp_mem.read_text().split()[-1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _GUESSED_TCP
    return machine // _SHARE_OF_TCP


def _user_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("\nUid:")[2].split()[0])


def _sweep(parent: Path) -> None:
    """Remove groups that a killed supervisor has left behind."""
    for old in parent.glob(f"{_PREFIX}*"):
        pid = old.name.removeprefix(_PREFIX)
        if pid == str(os.getpid()) or not Path(f"/proc/{pid}").exists():  # an earlier process had our process ID
            _rmdir((*sorted(old.rglob("*/"), reverse=True), old))


class _CachedReader:
    """Reads a group's files, and remembers counters. An unreadable file is not an error, and is logged once."""

    def __init__(self) -> None:
        self._said = False
        self._counted: dict[str, int] = {}

    def read(self, read: Callable[[], int]) -> int | None:
        """Read a number; None if that fails."""
        try:
            return read()
        except (OSError, ValueError) as e:
            if not self._said:
                log.warning("cgroup cannot be read; estimating the usage of its sandbox without it", error=str(e))
                self._said = True
            return None

    def count(self, file: Path, key: str) -> int:
        """Read a counter that never decreases; returns the previous value if it cannot be read."""
        self._counted[key] = self.read(lambda: _read_key(file, key)) or self._counted.get(key, 0)
        return self._counted[key]


class _LeftoverGroups:
    """Groups that were not empty when they should have been removed."""

    def __init__(self) -> None:
        self._groups: set[SessionCgroup] = set()

    def note(self, group: SessionCgroup, *, removed: bool) -> bool:
        """Remember a group that still exists; returns ``removed``."""
        (self._groups.discard if removed else self._groups.add)(group)
        return removed

    def sweep(self) -> None:
        """Try to remove them again."""
        for group in list(self._groups):
            group.kill()
            group.remove()


def _rmdir(paths: Iterable[Path]) -> bool:
    for path in paths:
        with contextlib.suppress(OSError):
            path.rmdir()
    return not any(path.exists() for path in paths)


def _read_key(file: Path, key: str) -> int:
    for line in file.read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


class _V2Groups:
    version = 2

    def __init__(self, base: Path) -> None:
        self._base = base
        self._left = _LeftoverGroups()
        self.sweep = self._left.sweep

    @classmethod
    def make(cls) -> _V2Groups:
        return cls(cls._make_base(divided=True))

    @classmethod
    def delegate(cls, user: int) -> list[Path]:
        base = cls._make_base(divided=False)  # it is going to hold a process
        _hand_over(base, user)
        return [base]

    @classmethod
    def _make_base(cls, *, divided: bool) -> Path:
        own, *others = own_folders("")
        divided_before = [own.parent] if own.name == _LEAF else []  # by a supervisor that has ended
        for parent in (*divided_before, own, *others):
            with contextlib.suppress(OSError):
                return cls._base_in(parent, may_step_aside=parent == own, divided=divided)
        raise OSError("no cgroup of version 2 can be divided here")

    @staticmethod
    def _base_in(parent: Path, *, may_step_aside: bool, divided: bool) -> Path:
        if missing := missing_controllers(parent):
            raise OSError(f"{parent} has no {' or '.join(missing)}")  # beside version 1, it may have none
        _sweep(parent)
        base = parent / f"{_PREFIX}{os.getpid()}"
        base.mkdir()
        try:
            try:
                (parent / "cgroup.subtree_control").write_text(_CONTROLLERS)
            except OSError:
                if not may_step_aside:
                    raise
                _step_aside(parent)
                (parent / "cgroup.subtree_control").write_text(_CONTROLLERS)
            if divided:
                (base / "cgroup.subtree_control").write_text(_CONTROLLERS)
        except OSError:
            base.rmdir()
            raise
        return base

    def create(self, name: str, limits: Limits) -> SessionCgroup:
        path = self._base / name
        path.mkdir()
        try:
            self._limit(path, limits)
        except OSError:
            _rmdir([path])
            raise
        return _V2Group(path, self._left)

    @staticmethod
    def _limit(path: Path, limits: Limits) -> None:
        (path / "memory.max").write_text(str(limits.memory_mb * MiB))
        with contextlib.suppress(OSError):
            (path / "memory.swap.max").write_text("0")
        (path / "pids.max").write_text(str(limits.processes))
        (path / "cpu.max").write_text(f"{int(limits.cpu_cores * _PERIOD_US)} {_PERIOD_US}")

    def close(self) -> None:
        _rmdir((*self._base.glob("*/"), self._base))


def _step_aside(group: Path) -> None:
    """Move the processes of a group into a leaf, because a group with processes cannot delegate controllers.

    All of them move if the group is a systemd service, or belongs to our unprivileged user, to whom systemd has then
    delegated it: ``make`` and a shell may be in it. Otherwise they must be ours: this process, its parent and what
    that has started, such as the web processes of ``lockstep serve``.
    """
    user = os.geteuid()
    all_may_move = group.name.endswith(".service") or (user > 0 and group.stat().st_uid == user)
    leaf = group / _LEAF
    for _ in range(_MOST_MOVES):
        pids = list(map(int, (group / "cgroup.procs").read_text().split()))
        if not all_may_move and not all(map(_is_ours, pids)):
            raise OSError(f"{group} contains other processes")
        if not pids:
            return
        leaf.mkdir(exist_ok=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(str(pid))


def _is_ours(pid: int) -> bool:
    ours = {os.getpid(), os.getppid()}
    if pid in ours:
        return True
    while pid > 1 and pid not in ours:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return True
    return pid > 1


class _V2Group:
    def __init__(self, path: Path, left: _LeftoverGroups) -> None:
        self._path = path
        self._left = left
        self._known = _CachedReader()
        self._peak = _open_peak(path / "memory.peak")
        self._peak_before = 0
        """Before Linux 6.12 there is only one peak, and it never decreases."""

    def add(self, pid: int) -> None:
        (self._path / "cgroup.procs").write_text(str(pid))

    def facts(self) -> CgroupStats:
        return CgroupStats(
            oom_kills=self._known.count(self._path / "memory.events", "oom_kill"),
            forks_refused=self._known.count(self._path / "pids.events", "max"),
            peak_bytes=self._known.read(self._peak_now),
            cpu_s=_seconds(self._known.read(lambda: _read_key(self._path / "cpu.stat", "usage_usec") * 1000)),
        )

    def reset_peak(self) -> None:
        with contextlib.suppress(OSError):  # Linux before 5.19 has no peak
            if self._peak is not None:
                os.pwrite(self._peak, b"reset", 0)
            else:
                self._peak_before = int((self._path / "memory.peak").read_text())

    def _peak_now(self) -> int:
        current = int((self._path / "memory.current").read_text())
        try:
            if self._peak is not None:
                return max(current, int(os.pread(self._peak, 32, 0)))
            peak = int((self._path / "memory.peak").read_text())
        except OSError:
            return current
        return peak if peak > self._peak_before else current

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            (self._path / "cgroup.kill").write_text("1")

    def remove(self) -> bool:
        if self._peak is not None:
            os.close(self._peak)
            self._peak = None
        return self._left.note(self, removed=_rmdir([self._path]))


def _open_peak(file: Path) -> int | None:
    """Open ``memory.peak`` if each descriptor of it has its own peak, which a write resets: since Linux 6.12."""
    with contextlib.suppress(FileNotFoundError):
        if file.stat().st_mode & stat.S_IWUSR:
            return os.open(file, os.O_RDWR | os.O_CLOEXEC)
    return None


class _V1Groups:
    version = 1
    controllers = ("memory", "pids", "cpu", "cpuacct")

    def __init__(self, bases: dict[str, Path]) -> None:
        self._bases = bases
        self._left = _LeftoverGroups()
        self.sweep = self._left.sweep

    @classmethod
    def make(cls) -> _V1Groups:
        bases = {}
        for controller in cls.controllers:
            parent = own_folders(controller)[0]
            _sweep(parent)
            bases[controller] = parent / f"{_PREFIX}{os.getpid()}"
            bases[controller].mkdir(exist_ok=True)  # cpu and cpuacct are often one folder under two names
        with contextlib.suppress(OSError):  # not every kernel counts them
            (bases["memory"] / _IN_TCP_SOCKETS).write_text(str(most_in_sockets()))
        return cls(bases)

    @classmethod
    def delegate(cls, user: int) -> list[Path]:
        bases = list(dict.fromkeys(cls.make()._bases.values()))
        for base in bases:
            _hand_over(base, user)
        return bases

    def create(self, name: str, limits: Limits) -> SessionCgroup:
        paths = {controller: base / name for controller, base in self._bases.items()}
        try:
            for path in paths.values():
                path.mkdir(exist_ok=True)
            self._limit(paths, limits)
        except OSError:
            _rmdir(paths.values())
            raise
        return _V1Group(paths, self._left)

    @staticmethod
    def _limit(paths: dict[str, Path], limits: Limits) -> None:
        size = str(limits.memory_mb * MiB)
        (paths["memory"] / "memory.limit_in_bytes").write_text(size)
        try:
            (paths["memory"] / "memory.memsw.limit_in_bytes").write_text(size)
        except OSError:  # swap is not accounted: keep the group out of it
            (paths["memory"] / "memory.swappiness").write_text("0")
        with contextlib.suppress(OSError):  # version 1 counts memory of TCP and UDP sockets separately, or not at all
            (paths["memory"] / _IN_TCP_SOCKETS).write_text(str(limits.memory_mb * MiB // _IN_SOCKETS))
        (paths["pids"] / "pids.max").write_text(str(limits.processes))
        (paths["cpu"] / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (paths["cpu"] / "cpu.cfs_quota_us").write_text(str(int(limits.cpu_cores * _PERIOD_US)))

    def close(self) -> None:
        for base in self._bases.values():
            _rmdir((*base.glob("*/"), base))


class _V1Group:
    def __init__(self, paths: dict[str, Path], left: _LeftoverGroups) -> None:
        self._paths = paths
        self._left = left
        self._known = _CachedReader()
        with_swap = paths["memory"] / "memory.memsw.max_usage_in_bytes"
        self._peak = with_swap if with_swap.exists() else paths["memory"] / "memory.max_usage_in_bytes"

    def add(self, pid: int) -> None:
        for path in dict.fromkeys(self._paths.values()):
            file = path / "cgroup.procs"
            try:
                file.write_text(str(pid))
            except PermissionError:  # only root on the machine, or the process's own user, may move it
                user = _user_of(pid)
                os.chown(file, user, -1)
                with effective_user(user):
                    file.write_text(str(pid))

    def facts(self) -> CgroupStats:
        return CgroupStats(
            oom_kills=self._known.count(self._paths["memory"] / "memory.oom_control", "oom_kill"),
            forks_refused=self._known.count(self._paths["pids"] / "pids.events", "max"),
            peak_bytes=self._known.read(lambda: int(self._peak.read_text())),
            cpu_s=_seconds(self._known.read(lambda: int((self._paths["cpuacct"] / "cpuacct.usage").read_text()))),
        )

    def reset_peak(self) -> None:
        with contextlib.suppress(OSError):
            self._peak.write_text("0")

    def kill(self) -> None:
        """Do nothing: version 1 cannot kill a group, so the PID namespace does it."""

    def remove(self) -> bool:
        return self._left.note(self, removed=_rmdir(self._paths.values()))
