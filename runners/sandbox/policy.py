"""Defines what a sandbox looks like from inside, as frozen data that ``setup`` applies.

This module only checks which folders exist and changes nothing, so tests need no sandbox.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Self

from runners.config.settings import Limits, MiB
from runners.devices import tpu_vm
from runners.devices.allocation import DeviceAllocation
from runners.sandbox import nvidia_smi
from runners.sandbox.landlock import DEVICE, OVERWRITE, WRITE, AccessRight
from runners.sandbox.layout import (
    DATASETS,
    GRANTED_GPUS_VARIABLE,
    HOME,
    HOSTNAME,
    PYTHON_FOLDER,
    SHM,
    TMP,
    UID,
    WRITABLE_FOLDERS,
)

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime", "mime.types", "magic")
_MAPPED_MB = 1024
"""Address space that a kernel maps at start, mostly thread stacks; hardly any of it is in memory."""
_RUNS_OF_A_PROCESS = 10
"""One process may use the CPU time of this many runs, because a kernel executes many."""
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_SYSCTLS = (
    *((f"user/max_{kind}_namespaces", "0") for kind in _NAMESPACES),
    ("user/max_fanotify_groups", "0"),
    ("user/max_fanotify_marks", "0"),
    # The kernel counts these for the outside user as well, which sessions share if the supervisor is not root.
    ("user/max_inotify_instances", "16"),
    ("user/max_inotify_watches", "8192"),
    # No cgroup counts what waits in connections that nobody has accepted, nor copies of sent packets with timestamps.
    ("net/ipv4/tcp_rmem", "4096 131072 1048576"),
    # Connections that are closed but remembered for a minute do not count as sockets of the session.
    ("net/ipv4/tcp_max_tw_buckets", "512"),
)
_PROC_HIDDEN = (
    *("kallsyms", "kcore", "key-users", "keys", "latency_stats", "modules", "sched_debug", "timer_list"),
    # the kernel's build and boot, and what the machine's other users do
    *(
        "buddyinfo",
        "cmdline",
        "config.gz",
        "consoles",
        "crypto",
        "diskstats",
        "dma",
        "fb",
        "interrupts",
        "iomem",
        "ioports",
        "locks",
        "mdstat",
        "mtrr",
        "pagetypeinfo",
        "partitions",
        "schedstat",
        "slabinfo",
        "softirqs",
        "swaps",
        "version_signature",
        "vmallocinfo",
        "zoneinfo",
    ),
)
_PROC_COVERED = ("acpi", "asound", "bus", "fs", "irq", "pressure", "scsi")
"""A trigger in ``pressure`` is a timer of the kernel that nothing counts, and ``irq`` counts interrupts, as the hidden
``interrupts`` does; the others describe the machine."""
_SMI = f"{nvidia_smi.PROGRAM_FOLDER}/smi.py"
_PACKAGE = str(Path(__file__).resolve().parents[1])
"""A kernel that is not forked from a warm one imports TensorFlow inside the sandbox."""
_SITECUSTOMIZE = (f"{PYTHON_FOLDER}/sitecustomize.py", Path(_PACKAGE, "guest/runtime/sitecustomize.py").read_text())
_DRIVERS = "driver"
_GPU_FACTS = f"{_DRIVERS}/nvidia"
_DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True, slots=True)
class Tmpfs:
    """A private writable folder in memory."""

    path: str
    size: int
    """Bytes."""
    inodes: int
    mode: int = 0o700


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """Everything that ``setup`` needs to build one sandbox."""

    read_only: tuple[tuple[str, str], ...]
    """(source on the host, target inside), each with the mounts below it."""
    covered: tuple[str, ...]
    """Folders below those that are empty inside."""
    links: tuple[tuple[str, str], ...]
    """(target, name) of symbolic links."""
    files: tuple[tuple[str, str], ...]
    """(path, content) of small files created for the sandbox."""
    programs: tuple[tuple[str, str], ...]
    """The same for small programs."""
    devices: tuple[str, ...]
    tmpfs: tuple[Tmpfs, ...]
    rlimits: tuple[tuple[str, int], ...]
    """(name of a resource.RLIMIT_*, limit)."""
    environment: tuple[tuple[str, str], ...]
    sysctls: tuple[tuple[str, str], ...]
    """(path below /proc/sys, value), set if this kernel has one per user namespace."""
    proc_hidden: tuple[str, ...]
    """Files below /proc that appear empty inside."""
    proc_covered: tuple[str, ...]
    """Folders below /proc that appear empty inside."""
    proc_shown: tuple[str, ...]
    """Files and folders of the host's /proc that a session without its own sees, in addition to the harmless ones."""
    proc_writable: bool
    """Whether a process may write the files of its own in ``/proc``: CUDA's driver starts only if it can name its
    threads there."""
    landlock: tuple[tuple[str, int], ...]
    """(path, ``landlock.AccessRight``s on files and folders below it)."""
    seccomp: tuple[str, ...] = field(repr=False, default=())
    """The compiled filters, as hexadecimal text."""

    def to_json(self) -> str:
        """Serialize the policy for the connection between supervisor and zygote."""
        return json.dumps(asdict(self))

    @classmethod
    @lru_cache(maxsize=1)
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote, which is nearly always the same."""
        raw = json.loads(text)
        for name in ("read_only", "links", "files", "programs", "rlimits", "environment", "sysctls", "landlock"):
            raw[name] = tuple(map(tuple, raw[name]))
        for name in ("covered", "devices", "proc_hidden", "proc_covered", "proc_shown", "seccomp"):
            raw[name] = tuple(raw[name])
        raw["tmpfs"] = tuple(Tmpfs(**t) for t in raw["tmpfs"])
        return cls(**raw)


def python_folders() -> tuple[str, ...]:
    """The folders that Python itself needs (environment, interpreter, libraries), outermost only."""
    wanted = sorted({str(Path(p).absolute()) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)})
    outer = [p for p in wanted if not any(p != q and p.startswith(q + "/") for q in wanted)]
    return tuple(p for p in outer if not any(p == s or p.startswith(s + "/") for s in _SYSTEM))


def system_folders() -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """(read-only binds, symbolic links) that make up the operating system's part of the root."""
    binds, links = [], []
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            links.append((str(folder.readlink()), str(folder)))
        elif folder.is_dir():
            binds.append((str(folder), str(folder)))
    binds += [(p, p) for name in _ETC if Path(p := f"/etc/{name}").exists()]
    return tuple(binds), tuple(links)


@cache
def private_folders(shown: tuple[str, ...], package: Path = Path(_PACKAGE)) -> tuple[str, ...]:
    """The application beside this package, and what else is in a checkout, as far as they lie in what is shown.

    A wheel brings the lessons along, and with them solutions and checks.
    """
    project = package.parent
    names = ("app", "lessons", "tests", "docs", ".git") if (project / "pyproject.toml").is_file() else ("app",)
    folders = [project / name for name in names if (project / name).is_dir()]
    return tuple(str(folder) for folder in folders if any(Path(top) in folder.parents for top in shown))


def session_policy(
    limits: Limits, datasets: str | None, seccomp: tuple[bytes, ...], allocation: DeviceAllocation | None = None
) -> SandboxPolicy:
    """Build the policy for a session.

    Args:
        limits: what it may use.
        datasets: the data set cache as the zygote sees it, or None.
        seccomp: the compiled filters.
        allocation: its real devices, if any; it sees no others.
    """
    devices = (*_DEVICES, *(allocation.nodes if allocation else ()))
    binds, links = system_folders()
    binds += (*((p, p) for p in python_folders()), (_PACKAGE, f"{PYTHON_FOLDER}/runners"))
    if datasets:
        binds += ((datasets, DATASETS),)
    if allocation and allocation.tpu:
        binds += tuple((folder, folder) for folder in (*allocation.tpu.facts, _PACKAGE))
    disk = limits.disk_mb * MiB
    return SandboxPolicy(
        read_only=binds,
        covered=private_folders(tuple(target for _, target in binds)),
        links=links,
        files=(
            *_etc_files(),
            _SITECUSTOMIZE,
            *(() if allocation else ((_SMI, Path(nvidia_smi.__file__).read_text()),)),
        ),
        programs=() if allocation else ((f"{nvidia_smi.PROGRAM_FOLDER}/nvidia-smi", _nvidia_smi(limits)),),
        devices=devices,
        tmpfs=(
            Tmpfs(TMP, disk, limits.inodes, 0o1777),
            Tmpfs(HOME, disk, limits.inodes),
            Tmpfs(SHM, disk, limits.inodes, 0o1777),
        ),
        rlimits=_rlimits(limits, allocation),
        environment=(*_environment(allocation), *_device_environment(allocation)),
        sysctls=_SYSCTLS,
        proc_hidden=_PROC_HIDDEN,
        proc_covered=_PROC_COVERED if allocation else (*_PROC_COVERED, _DRIVERS),
        proc_shown=(_GPU_FACTS, "devices") if allocation else (),
        proc_writable=allocation is not None,
        landlock=(*_landlock(devices), *((("/proc", int(OVERWRITE)),) if allocation else ())),
        seccomp=tuple(program.hex() for program in seccomp),
    )


def _landlock(names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Repeat where a session may write, so that a mount that is writable by mistake stays protected."""
    read = AccessRight.EXECUTE | AccessRight.READ_FILE | AccessRight.READ_DIR
    own = tuple((path, int(read | WRITE)) for path in WRITABLE_FOLDERS)
    devices = tuple((f"/dev/{name}", int(DEVICE)) for name in (*names, "pts"))
    return (("/", int(read)), *own, *devices)


def _etc_files() -> tuple[tuple[str, str], ...]:
    return (
        ("/etc/passwd", f"learner:x:{UID}:{UID}:Learner:{HOME}:/bin/bash\n"),
        ("/etc/group", f"learner:x:{UID}:\n"),
        ("/etc/hosts", f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n"),
        ("/etc/hostname", f"{HOSTNAME}\n"),
        ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
        ("/etc/resolv.conf", ""),
    )


def _nvidia_smi(limits: Limits) -> str:
    """The script that runs ``nvidia_smi.py``."""
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {_SMI} {limits.memory_mb} "$@"\n'


def _rlimits(limits: Limits, allocation: DeviceAllocation | None) -> tuple[tuple[str, int], ...]:
    # CUDA's libraries reserve many times what they use, so only the cgroup limits memory.
    data = () if allocation else (("RLIMIT_DATA", (2 * limits.memory_mb + _MAPPED_MB) * MiB),)
    # A TPU's driver locks the memory that its chips read.
    locked = limits.memory_mb * MiB if allocation and allocation.tpu else 65_536
    return (
        ("RLIMIT_CORE", 1),  # too small for a file, and unlike 0 it keeps cores from the host's core helper
        ("RLIMIT_NOFILE", limits.open_files),
        ("RLIMIT_NPROC", limits.processes),
        ("RLIMIT_FSIZE", limits.file_mb * MiB),
        *data,  # a second line of defense: the cgroup is the real memory limit
        ("RLIMIT_CPU", _RUNS_OF_A_PROCESS * limits.cpu_s),  # a second line of defense: the supervisor counts each run
        ("RLIMIT_MEMLOCK", locked),
        ("RLIMIT_MSGQUEUE", 0),
        ("RLIMIT_SIGPENDING", 4096),
        ("RLIMIT_NICE", 0),
        ("RLIMIT_RTPRIO", 0),
    )


def _environment(allocation: DeviceAllocation | None) -> tuple[tuple[str, str], ...]:
    # A program that the learner starts imports TensorFlow again. On a TPU VM, libtpu would look for missing chips.
    no_tpu = () if allocation and allocation.tpu else (("TPU_LOAD_LIBRARY", "0"),)
    return (
        *no_tpu,
        ("HOME", HOME),
        ("USER", "learner"),
        ("LOGNAME", "learner"),
        ("SHELL", "/bin/bash"),
        ("PATH", f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("TERM", "xterm-256color"),
        ("TMPDIR", "/tmp"),  # noqa: S108
        ("MPLBACKEND", "module://matplotlib_inline.backend_inline"),
        ("MPLCONFIGDIR", "/tmp/.matplotlib"),  # noqa: S108
        ("IPYTHONDIR", "/tmp/.ipython"),  # noqa: S108
        ("PLOTLY_RENDERER", "plotly_mimetype"),  # data that the page draws, not a script
        ("LOCKSTEP_DATASETS", DATASETS),
        ("PYTHONPATH", PYTHON_FOLDER),
    )


def _device_environment(allocation: DeviceAllocation | None) -> tuple[tuple[str, str], ...]:
    """The variables that tell CUDA, libtpu and the guest which real devices the session has.

    Without real devices there are none: ``CUDA_VISIBLE_DEVICES`` is then free for the learner to set, for simulated
    GPUs, and a sandbox without device nodes has nothing to hide.
    """
    if allocation is None:
        return ()
    shares = [[share.logical, share.memory_mb] for share in allocation.shares]
    libraries = os.environ.get("LD_LIBRARY_PATH")  # in a container, only this may lead to the driver's libraries
    return (
        *((("LD_LIBRARY_PATH", libraries),) if libraries and shares else ()),
        ("CUDA_VISIBLE_DEVICES", ",".join(share.unit.uuid for share in allocation.shares) or "-1"),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "true"),
        *(tpu_vm.environment(allocation.tpu) if allocation.tpu else ()),
        (GRANTED_GPUS_VARIABLE, json.dumps(shares)),
    )
