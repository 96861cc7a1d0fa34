"""Reads from outside what the operating system says about a sandbox: ``/proc`` and the cgroup's files.

Nothing here relies on what the sandbox was meant to be; ``runners.diagnostics.isolation_checks`` judges what was
observed. What cannot be read (another user's process, a covered ``/proc``) is left empty, and an empty fact never
counts as isolation.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from runners.sandbox.cgroups import folder_of, parse_paths

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
_STATUS = (
    "Uid",
    "PPid",
    "NSpid",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
)
_GROUP_FILES = {
    "memory": ("memory.max", "memory.swap.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    "pids": ("pids.max",),
    "cpu": ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
}
_CONTAINER_SIGNS = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")
_IDLE_TUNNELS = frozenset(
    {"tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0", "teql0"}
)
"""Network devices, down and unconnected, that some kernels put into every network namespace."""
_PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.01


class InspectionFailed(RuntimeError):
    """The sandbox could not be inspected, so nothing is known about its isolation."""


class _Observation(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MountEntry(_Observation):
    """One line of mountinfo."""

    point: str
    root: str = "/"
    """The mounted part of its file system: ``/null`` for a single device."""
    kind: str
    options: frozenset[str]
    """Options of this mount: ``ro``, ``nosuid``, …"""
    size: str = ""
    """Options of the file system, such as ``size=524288k,nr_inodes=32768`` of a tmpfs."""


class InspectedProcess(_Observation):
    """One process. Keys are the kernel's own names."""

    status: dict[str, str] = {}
    namespaces: dict[str, str] = {}
    """``net`` to ``net:[4026531840]``."""
    rlimits: dict[str, str] = {}
    """``Max processes`` to the soft limit, in the unit of the file."""
    mounts: tuple[MountEntry, ...] = ()
    interfaces: tuple[str, ...] = ()
    """Network interfaces in its namespace, except the unconnected ones that every namespace has."""
    uid_map: str = ""
    cgroups: dict[str, str] = {}
    """Controller to path; the empty name stands for version 2."""
    hidden: bool = False
    """Not dumpable: other processes of the same user can neither read nor write its memory."""


class SandboxInspection(_Observation):
    """A sandbox with a kernel in it, the processes around it, and the content of its cgroup's files."""

    supervisor: InspectedProcess
    zygote: InspectedProcess
    init: InspectedProcess
    kernel: InspectedProcess
    group: dict[str, str] = {}
    """The limits in the files of the kernel's own cgroup, without line endings."""
    around: dict[str, str] = {}
    """The limits of the supervisor's group, which hold for everything in it: all sessions, itself, other programs."""
    container: str = ""
    """The evidence that the supervisor runs in a container; empty if there is none."""
    landlock: int = 0
    """The Landlock ABI version that PID 1 reports to have applied; 0 for none."""


async def inspect_sandbox(init: int, landlock: int = 0) -> SandboxInspection:
    """Inspect a sandbox.

    Args:
        init: the host's process ID of its PID 1, which is starting a kernel; waits for that at most half a minute.
        landlock: the version that PID 1 reported; the system does not show it anywhere.

    Raises:
        InspectionFailed: PID 1 or its kernel has ended, or the kernel did not start.
    """
    kernel = await _kernel_of(init)
    at_init, at_supervisor = inspect_process(init), inspect_process(os.getpid())
    at_kernel = inspect_process(kernel) if kernel else InspectedProcess()
    if not (at_init.status and at_kernel.status):
        raise InspectionFailed("the first sandbox has no kernel to inspect: it did not start, or it has ended")
    return SandboxInspection(
        supervisor=at_supervisor,
        zygote=inspect_process(int(at_init.status.get("PPid", 0))),
        init=at_init,
        kernel=at_kernel,
        group=_group(at_kernel.cgroups, at_supervisor.cgroups),
        around=_around(at_supervisor.cgroups),
        container=container_evidence(),
        landlock=landlock,
    )


async def _kernel_of(init: int) -> int | None:
    """The first child of PID 1 once it can be inspected: right after its fork it is still hidden, like PID 1."""
    give_up_at = time.monotonic() + _PATIENCE_S
    kernel = None
    while time.monotonic() < give_up_at:
        with contextlib.suppress(psutil.Error):
            kernel = next((child.pid for child in psutil.Process(init).children()), None)
        if kernel and not _hidden(kernel):
            break
        await asyncio.sleep(_LOOK_EVERY_S)
    return kernel


def inspect_process(pid: int) -> InspectedProcess:
    """Read what ``/proc`` shows of one process."""
    status = dict(line.split(":\t", 1) for line in _lines(pid, "status") if ":\t" in line)
    return InspectedProcess(
        status={name: " ".join(status[name].split()) for name in _STATUS if name in status},
        namespaces=_namespaces(pid),
        rlimits={line[:26].strip(): line[26:].split()[0] for line in _lines(pid, "limits")[1:]},
        mounts=tuple(map(parse_mount, _lines(pid, "mountinfo"))),
        interfaces=tuple(name for name in _interfaces(pid) if name not in _IDLE_TUNNELS),
        uid_map="; ".join(" ".join(line.split()) for line in _lines(pid, "uid_map")),
        cgroups=parse_paths(_lines(pid, "cgroup")),
        hidden=_hidden(pid),
    )


def container_evidence() -> str:
    """The evidence that this process runs in a container; empty if there is none."""
    return next((sign for sign in _CONTAINER_SIGNS if Path(sign).exists()), "")


def parse_mount(line: str) -> MountEntry:
    """Parse one line of ``/proc/PID/mountinfo``, as proc(5) describes it."""
    before, _, after = line.partition(" - ")
    root, point, options = before.split()[3:6]
    kind, _source, *rest = after.split()
    sized = [o for o in ",".join(rest).split(",") if o.startswith(("size=", "nr_inodes="))]
    return MountEntry(point=point, root=root, kind=kind, options=frozenset(options.split(",")), size=",".join(sized))


def _lines(pid: int, name: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/{name}").read_text().splitlines()
    except OSError:
        return []


def _namespaces(pid: int) -> dict[str, str]:
    found = {}
    for name in NAMESPACES:
        with contextlib.suppress(OSError):
            found[name] = str(Path(f"/proc/{pid}/ns/{name}").readlink())
    return found


def _interfaces(pid: int) -> list[str]:
    return [line.split(":")[0].strip() for line in _lines(pid, "net/dev")[2:]]


def _group(kernel: dict[str, str], supervisor: dict[str, str]) -> dict[str, str]:
    """Read the limits of the kernel's group; a group that it shares with the supervisor does not count."""
    own = {name: path for name, path in kernel.items() if path != supervisor.get(name)}
    return {file: text for folder, file in _files(own) if (text := _text(folder / file))}


def _around(supervisor: dict[str, str]) -> dict[str, str]:
    """Read the lowest numbers in the limits of the supervisor's own group and of those around it."""
    found: dict[str, str] = {}
    for folder, file in _files(supervisor):
        numbers = [int(text) for group in (folder, *folder.parents) if (text := _text(group / file)).isdigit()]
        if numbers:
            found[file] = str(min(numbers))
    return found


def _files(groups: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield (folder, file) of each limit that these groups may have, in either cgroup version."""
    for controller, files in _GROUP_FILES.items():
        for name in (controller, ""):
            if name in groups and (folder := folder_of(name, groups[name])):
                yield from ((folder, file) for file in files)


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _hidden(pid: int) -> bool:
    """Whether a process is not dumpable: its files in ``/proc`` then have an owner other than its own user."""
    try:
        owner = Path(f"/proc/{pid}/environ").stat().st_uid
        return owner != Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return False
