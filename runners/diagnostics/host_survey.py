"""Surveys this machine by trying things out: ``python -m runners.diagnostics.host_survey`` prints JSON.

It runs as a separate process because it leaves its namespaces. It needs no settings and no TensorFlow, so it also works
where a runner cannot start.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from runners.config.settings import MiB
from runners.devices.allocation import HardwareListing, usable_devices
from runners.devices.discovery import discover
from runners.diagnostics.inspection import container_evidence, inspect_process
from runners.sandbox import linux
from runners.sandbox.cgroups import missing_controllers, own_folders
from runners.sandbox.machine_limits import available_resources
from runners.sandbox.seccomp import compile_filters
from runners.wire.protocol import Capability, HostSurvey

_NOBODY = 65_534
_OLDEST_LINUX = (5, 12)
"""The first with mount_setattr, which makes the mounts that a session sees read-only."""
_CAP_SYS_ADMIN = 1 << 21
_LSM = "Add it to the security modules at boot: lsm=landlock,…"


def survey() -> HostSurvey:
    """Survey the machine. Changes nothing except the namespaces of its own child processes."""
    looks = (
        _kernel,
        _user,
        _container,
        _user_namespaces,
        _fresh_proc,
        _seccomp,
        _landlock,
        _cgroups,
        bubblewrap,
        _cpus,
        memory,
        _accelerators,
        python_packages,
    )
    return HostSurvey(capabilities=[look() for look in looks])


def _kernel() -> Capability:
    release = platform.release()
    numbers = tuple(map(int, re.findall(r"\d+", release)[:2]))
    return Capability(
        name="kernel",
        good=sys.platform == "linux" and numbers >= _OLDEST_LINUX,
        detail=f"{platform.system()} {release} on {platform.machine()}",
        means="Sandboxes need Linux 5.12 or later.",
    )


def _user() -> Capability:
    if os.geteuid():
        return Capability(name="user", good=True, detail=f"uid {os.geteuid()}, an unprivileged user")
    if outside := linux.user_outside():
        return Capability(name="user", good=True, detail=f"uid {outside}; root only of the users of its sandboxes")
    able = bool(int(inspect_process(os.getpid()).status["CapEff"], 16) & _CAP_SYS_ADMIN)
    detail = "root; sandboxes still run as an ordinary user" + ("" if able else "; without CAP_SYS_ADMIN")
    means = "Bubblewrap may fail as this root. If the runner does not start, start it as an ordinary user."
    return Capability(name="user", good=able, detail=detail, means=means)


def _container() -> Capability:
    sign = container_evidence()
    detail = f"in a container, according to {sign}" if sign else "no sign of one"
    return Capability(name="container", good=True, detail=detail)


def _user_namespaces() -> Capability:
    trouble = _tried(lambda: linux.unshare(linux.CLONE_NEWUSER))
    switches = [f"{name}={value}" for name in _SWITCHES if (value := _read(Path("/proc/sys", *name.split("."))))]
    return Capability(
        name="user namespaces",
        good=not trouble,
        detail=f"refused: {trouble} ({', '.join(switches)})" if trouble else "unprivileged users may create them",
        means=(
            "No sandbox can be created. sysctl kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile "
            "that allows them (Ubuntu); sysctl user.max_user_namespaces=15000; in a container "
            "docker/runner.seccomp.json."
        )
        + _confinement(),
    )


_SWITCHES = (
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.unprivileged_userns_clone",
    "user.max_user_namespaces",
)


def _fresh_proc() -> Capability:
    def mount() -> None:
        uid, gid = os.getuid(), os.getgid()
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWPID)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        trouble = linux.run_in_child(lambda: linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV))
        if trouble:
            raise OSError(trouble, os.strerror(trouble))

    trouble = _tried(mount)
    return Capability(
        name="fresh /proc",
        good=not trouble,
        detail=f"refused: {trouble}" if trouble else "may be mounted in a sandbox",
        means=(
            "Sessions get an empty one; ps and /proc/self do not work there. In a container: security_opt "
            "systempaths=unconfined."
        )
        + _confinement(),
    )


def _confinement() -> str:
    return confinement(_read(Path("/proc/self/attr/current")))


def confinement(label: str) -> str:
    """A sentence on AppArmor or SELinux if one of them confines this process, which may be why it was refused. Pure.

    Args:
        label: the content of ``/proc/self/attr/current``; empty without such a module.
    """
    label = label.strip("\0\n ")
    context = label.split(":")
    if len(context) > 3 and "unconfined" not in context[2]:
        module, option = "SELinux", "label=disable"
    elif label.endswith("(enforce)"):
        module, option = "AppArmor", "apparmor=unconfined"
    else:
        return ""
    return f" {module} confines the runner as {label}; in a container, security_opt {option} ends that."


def _seccomp() -> Capability:
    filters = "Seccomp:" in _read(Path("/proc/self/status"))
    try:
        compile_filters()
        detail = "system call filters work, and libseccomp is installed" if filters else "no filters in the kernel"
    except RuntimeError as e:
        filters, detail = False, str(e)
    means = "No sandbox can be created. As root: apt-get install libseccomp2; the kernel needs CONFIG_SECCOMP_FILTER."
    return Capability(name="seccomp", good=filters, detail=detail, means=means)


def _landlock() -> Capability:
    found = linux.landlock_abi()
    means = f"Sessions have one isolation layer less. {_LSM}"
    return Capability(
        name="Landlock", good=found > 0, detail=f"version {found}" if found else "not available", means=means
    )


def _cgroups() -> Capability:
    with contextlib.suppress(OSError, KeyError):
        if found := cgroups_of_version_2(own_folders("")):
            return found
    number, folders = 0, list[Path]()
    with contextlib.suppress(OSError, KeyError):
        number, folders = 1, [own_folders(name)[0] for name in ("memory", "pids", "cpu")]
    good = number > 0 and all(os.access(folder, os.W_OK) for folder in folders)
    detail = f"version {number}, {'writable' if good else 'not writable here'}" if number else "not mounted"
    return Capability(name="cgroups", good=good, detail=detail, means=_NO_CGROUP)


def cgroups_of_version_2(folders: list[Path]) -> Capability | None:
    """Judge the groups that the runner may divide; None if version 2 does not limit memory, as beside version 1."""
    missing = {folder: missing_controllers(folder) for folder in folders}
    if all("memory" in names for names in missing.values()):
        return None
    lacking = [names for folder, names in missing.items() if os.access(folder, os.W_OK)]
    if not lacking or [] in lacking:
        detail = f"version 2, {'writable' if lacking else 'not writable here'}"
        return Capability(name="cgroups", good=bool(lacking), detail=detail, means=_NO_CGROUP)
    names = ", ".join(lacking[0])
    return Capability(
        name="cgroups", good=False, detail=f"version 2, writable, but without {names}", means=_NO_CONTROLLER
    )


_NO_CGROUP = (
    "Memory is only watched: memfd, shared memory, sockets and page tables escape, and CPU time is not divided, so the "
    "code of untrusted users is refused. Start the runner as root, or under systemd with Delegate=yes (systemd-run "
    "--user --scope -p Delegate=yes lockstep serve); in a container its own limits hold for all sessions together."
)
_NO_CONTROLLER = (
    "So sessions have no cgroups, and the code of untrusted users is refused. Start the runner with systemd-run --user "
    "--scope -p Delegate=yes lockstep serve. If that does not help, systemd does not let users have these controllers: "
    "as root, run systemctl edit user@.service, add [Service] and Delegate=cpu memory pids, and restart the machine."
)


def bubblewrap() -> Capability:
    """The outer sandbox of a runner, unless a container is one."""
    path = shutil.which("bwrap")
    if not path and os.geteuid() and container_evidence():
        return Capability(name="bubblewrap", good=True, detail="not found; the container is the outer sandbox")
    if not path:
        means = "There is no outer sandbox unless the container is one. As root: apt-get install bubblewrap."
        return Capability(name="bubblewrap", good=False, detail="not found", means=means)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.split()
    return Capability(name="bubblewrap", good=True, detail=f"{path}, version {said[-1] if said else 'unknown'}")


def _cpus() -> Capability:
    return Capability(name="CPUs", good=True, detail=f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} may be used")


def memory() -> Capability:
    """The memory of the machine, and what a cgroup allows of it."""
    machine = psutil.virtual_memory()
    swap = psutil.swap_memory().total
    detail = f"{machine.total // MiB:,} MiB, {machine.available // MiB:,} MiB free; {swap // MiB:,} MiB of swap"
    room = available_resources()
    if room.memory_is_limited:
        detail = f"{room.memory_mb:,} MiB, the limit of a cgroup; the machine has {detail}"
    return Capability(name="memory", good=True, detail=detail)


def _accelerators() -> Capability:
    return accelerators(discover(), os.environ.get(_DEVICES, "") or "auto")


def accelerators(listing: HardwareListing, mode: str) -> Capability:
    """Describe the accelerators found, whether sessions get them, and what to do if they cannot. Pure."""
    found = usable_devices(listing)
    names = [f"{count} x {name}" for name, count in Counter(unit.name for unit in found.gpus).items()]
    if found.tpu:
        names.append(f"TPU {found.tpu.kind}, a tpu:{found.tpu.cores}")
    serves = {"gpu": bool(found.gpus), "tpu": bool(found.tpu)}.get(mode, True)
    if mode == "simulate":
        follows = "sessions use simulated devices"
    elif not serves:
        follows = f"sessions that ask for a {mode.upper()} are refused"
    else:
        follows = "sessions get them while they are free" if names else "sessions use simulated devices"
    detail = f"{', '.join(names) or 'none found'}; {_DEVICES}={mode}: {follows}"
    means = ". ".join(found.unusable) or f"No real device was found; {_DEVICES}=auto simulates instead."
    return Capability(name="accelerators", good=serves and not found.unusable, detail=detail, means=means)


_DEVICES = "LOCKSTEP_DEVICES"


_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")


def python_packages() -> Capability:
    """Python and the builds of TensorFlow and Keras that are installed."""
    found = {}
    for package in (*_TENSORFLOWS, "keras", "tf_keras"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    parts = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in found.items())]
    means = "No code can run. Install the packages: make setup."
    return Capability(
        name="Python", good=any(name in found for name in _TENSORFLOWS), detail=", ".join(parts), means=means
    )


# --- trials -----------------------------------------------------------------------------------------------------


def _tried(work: Callable[[], object]) -> str:
    """Do ``work`` as an unprivileged user in a child process; returns the error, or an empty string."""

    def as_plain_user() -> None:
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # root that may not become this user, or has no such user, stays root
                os.setgroups([])
                os.setresgid(_NOBODY, _NOBODY, _NOBODY)
                os.setresuid(_NOBODY, _NOBODY, _NOBODY)
                linux.set_dumpable()
        work()

    number = linux.run_in_child(as_plain_user)
    return os.strerror(number) if number else ""


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    print(survey().model_dump_json())
