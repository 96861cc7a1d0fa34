"""Judges which limits on learners' code are in force, with the values that the operating system reports. Pure.

A limit is enforced by a cgroup, by rlimits, by the size of a tmpfs, or by the supervisor itself; each row says which.
"""

from __future__ import annotations

from runners.config.settings import Limits, MiB, RunnerSettings
from runners.diagnostics.inspection import MountEntry, SandboxInspection
from runners.wire.protocol import Safeguard

_FOLDERS = ("/tmp", "/home/learner", "/dev/shm")  # noqa: S108 - as a session sees them
_MEASURED = frozenset({"memory_mb", "processes", "cpu_cores", "disk_mb", "inodes", "open_files", "file_mb"})
"""Fields of Limits that the operating system enforces; the supervisor keeps the others."""
_NAMES = {
    "run_s": "duration of a run",
    "cpu_s": "CPU time of a run",
    "output_mb": "output of a run",
    "output_mb_per_s": "output per second",
    "display_mb": "one display",
    "events": "events of a run",
}
_ENDLESS = 1 << 60
"""Bytes; version 1 writes a number larger than this where there is no limit."""
_UNITS = (("_mb_per_s", "MiB/s"), ("_mb", "MiB"), ("_s", "s"))
_ONLY_WATCHED = "only watched; memfd, shared memory, sockets and page tables escape"
_DELEGATE = (
    "Delegate a cgroup to it: start it as root, or under systemd with Delegate=yes (systemd-run --user --scope "
    "-p Delegate=yes lockstep serve)"
)


def check_limits(sight: SandboxInspection, settings: RunnerSettings) -> list[Safeguard]:
    """Every limit, its value, and what enforces it."""
    return [
        _memory(sight, settings.limits),
        *_all_together(sight),
        _processes(sight, settings.limits),
        _cpu_share(sight, settings.limits),
        _rlimit(sight, "CPU time, process", "Max cpu time", "s"),
        _rlimit(sight, "open files", "Max open files", "in one process"),
        _rlimit(sight, "file size", "Max file size", "MiB"),
        *_disk(sight, settings.limits),
        *_kept_by_the_supervisor(settings),
    ]


def _memory(sight: SandboxInspection, limits: Limits) -> Safeguard:
    """Check the memory limit. A cgroup counts everything; without one, code can take the machine's memory."""
    written = sight.group.get("memory.max") or sight.group.get("memory.limit_in_bytes", "")
    swap = sight.group.get("memory.swap.max") == "0" or "memory.memsw.limit_in_bytes" in sight.group
    if written.isdigit():
        counted = "with swap" if swap else "swap is not counted"
        detail = f"{int(written) // MiB:,} MiB for a session, {counted}; {_version(sight)}"
        good = int(written) <= limits.memory_mb * MiB
        return _limit("memory", good, detail, essential=True, means=f"A session can take more. {_DELEGATE}.")
    means = (
        f"Malicious code can take far more than a session's {limits.memory_mb:,} MiB and end the sessions of "
        f"others: only people you trust may run code. {_DELEGATE}. In a container, its own limit applies to all "
        "sessions together."
    )
    return _limit("memory", False, _ONLY_WATCHED, essential=True, means=means)


def _all_together(sight: SandboxInspection) -> list[Safeguard]:
    """Check the limits that a container or a systemd unit sets for the whole runner, if any."""
    memory = sight.around.get("memory.max") or sight.around.get("memory.limit_in_bytes", "")
    pids = sight.around.get("pids.max", "")
    parts = [f"{int(memory) // MiB:,} MiB"] if memory.isdigit() and int(memory) < _ENDLESS else []
    parts += [f"{int(pids):,} processes"] if pids.isdigit() else []
    detail = f"{' and '.join(parts)} for the runner and all sessions; the runner's own cgroup"
    return [_limit("all together", True, detail)] if parts else []


def _processes(sight: SandboxInspection, limits: Limits) -> Safeguard:
    written, source = sight.group.get("pids.max", ""), _version(sight)
    if not written.isdigit():
        written, source = sight.kernel.rlimits.get("Max processes", ""), "RLIMIT_NPROC"
    good = written.isdigit() and int(written) <= limits.processes
    means = f"One session can use up the machine's process IDs. {_DELEGATE}."
    return _limit("processes", good, f"{written or 'unknown'} in a session; {source}", essential=True, means=means)


def _cpu_share(sight: SandboxInspection, limits: Limits) -> Safeguard:
    quota, _, period = sight.group.get("cpu.max", "").partition(" ")
    if not quota:
        quota, period = (sight.group.get(f"cpu.cfs_{name}_us", "") for name in ("quota", "period"))
    means = f"One busy session can slow the others down. {_DELEGATE}."
    if not (quota.isdigit() and period.isdigit()):
        detail = f"{limits.cpu_cores:g} cores requested; no cgroup"
        return _limit("CPU share", False, detail, essential=True, means=means)
    cores = int(quota) / int(period)
    return _limit(
        "CPU share", cores <= limits.cpu_cores, f"{cores:g} cores; {_version(sight)}", essential=True, means=means
    )


def _rlimit(sight: SandboxInspection, name: str, words: str, unit: str) -> Safeguard:
    value = sight.kernel.rlimits.get(words, "unknown")
    shown = f"{int(value) // MiB if unit == 'MiB' else int(value):,} {unit}" if value.isdigit() else value
    means = "The system did not apply this limit. Report this as a bug."
    return _limit(name, value.isdigit(), f"{shown}; rlimit", means=means)


def _disk(sight: SandboxInspection, limits: Limits) -> list[Safeguard]:
    mounts = {mount.point: mount for mount in sight.kernel.mounts}
    sizes = [_option(mounts.get(folder), "size=") for folder in _FOLDERS]
    inodes = [_option(mounts.get(folder), "nr_inodes=") for folder in _FOLDERS]
    means = "A session's files can fill the memory. Report this as a bug."
    good = all(sizes) and max(sizes) <= limits.disk_mb * MiB
    shown = " and ".join(f"{size // MiB:,}" for size in sorted(set(sizes)))
    detail = f"{shown} MiB in each of {', '.join(_FOLDERS)}; tmpfs, counted as memory"
    counted = f"{' and '.join(f'{n:,}' for n in sorted(set(inodes)))} in each of them; tmpfs"
    return [
        _limit("disk", good, detail, essential=True, means=means),
        _limit("files and folders", all(inodes), counted, essential=True, means=means),
    ]


def _option(mount: MountEntry | None, name: str) -> int:
    """The value of a tmpfs option, in bytes or as a count; 0 if it is not set."""
    options = mount.size.split(",") if mount else []
    text = next((option.removeprefix(name) for option in options if option.startswith(name)), "0")
    factor = {"k": 1024, "m": MiB, "g": 1024 * MiB}.get(text[-1:], 1)
    digits = text.rstrip("kmg")
    return int(digits) * factor if digits.isdigit() else 0


def _kept_by_the_supervisor(settings: RunnerSettings) -> list[Safeguard]:
    rows = []
    for field, value in settings.limits:
        if field not in _MEASURED and isinstance(value, int | float):
            unit = next((unit for suffix, unit in _UNITS if field.endswith(suffix)), "")
            rows.append(_limit(_NAMES.get(field, field.replace("_", " ")), True, f"{value:,.12g} {unit}".rstrip()))
    rows += [
        _limit("waiting runs", True, f"{settings.runs_per_session:,} in a session"),
        _limit(
            "idle session", True, f"{settings.idle_s:,.12g} s; {settings.eviction_grace_s:,.12g} s while somebody waits"
        ),
    ]
    return [row.model_copy(update={"detail": f"{row.detail}; the supervisor"}) for row in rows]


def _version(sight: SandboxInspection) -> str:
    return f"cgroup version {2 if {'memory.max', 'cpu.max'} & sight.group.keys() else 1}"


def _limit(name: str, in_force: bool, detail: str, *, essential: bool = False, means: str = "") -> Safeguard:
    return Safeguard(kind="limit", name=name, in_force=in_force, detail=detail, essential=essential, means=means)
