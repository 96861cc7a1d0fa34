"""Sets up a sandbox between the zygote's fork and the first line of learner code, as one list of steps.

``enter`` runs in a new child of the zygote. It moves to new namespaces, forks PID 1 of the new PID namespace, tells the
zygote its process ID, and exits. PID 1 builds its root folder, drops all rights, and only then serves kernels
(``runners.guest.pid1.init``). If a step fails, the child ends and reports the name of the step.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from runners.sandbox import landlock, linux
from runners.sandbox.layout import HOSTNAME, UID, WRITABLE_FOLDERS
from runners.sandbox.policy import SandboxPolicy

_NEW_ROOT = "/tmp"  # noqa: S108 - the zygote's own /tmp, covered by the new root in this mount namespace only
_CPU_GRACE_S = 5
"""From SIGXCPU to SIGKILL, in seconds of CPU time."""
_HARMLESS_PROC = ("cpuinfo", "meminfo", "stat", "version", "filesystems")
_EMPTY = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC | linux.MS_RDONLY
_REFUSED = (errno.EPERM, errno.ENOSYS)
"""How the filters answer those calls: the one for arguments refuses the first, the other the second."""
_NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
)


class SandboxSetupFailed(Exception):
    """A step of the sandbox's setup failed on this machine."""


def enter(
    policy: SandboxPolicy,
    report: socket.socket,
    serve: Callable[[int | None], None],
    hand_over: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Turn this process into a sandbox's PID 1 and run ``serve`` there. Never returns.

    Args:
        policy: what the sandbox looks like.
        report: written once by the process that forks PID 1 (its process ID in decimal, or ``!`` and the error), then
        once by PID 1 (``ready`` and its Landlock version, 0 for none, or ``!`` and the error).
        serve: the work of PID 1, called after all rights are dropped, with the descriptor of its own
            ``oom_score_adj``, opened before its ``/proc`` is read-only, if there is one.
        hand_over: called when the root folder is complete, before the limits apply to PID 1.
    """
    try:
        leave_namespaces()
        pid = linux.fork_quietly()
    except OSError as e:
        report.send(f"!namespaces: {e}".encode())
        os._exit(1)
    if pid:
        report.send(str(pid).encode())
        os._exit(0)
    status = 1
    try:
        score = _open_score()
        _set_up(policy, hand_over)
        report.send(f"ready {landlock.abi()}".encode())
        report.close()
        serve(score)
        status = 0
    except SandboxSetupFailed as e:
        report.send(f"!{e}".encode())
    finally:
        os._exit(status)


def _open_score() -> int | None:
    with contextlib.suppress(OSError):
        return os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    return None


def _set_up(policy: SandboxPolicy, hand_over: Callable[[], None]) -> None:
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        ("session", os.setsid),
        ("host name", lambda: linux.sethostname(HOSTNAME)),
        ("loopback", linux.loopback_up),
        ("root folder", lambda: build_root(policy)),
        ("folders", hand_over),
        ("environment", lambda: set_environment(policy)),
        ("limits", lambda: set_limits(policy)),
        ("capabilities", linux.drop_capabilities),
        ("no new privileges", linux.no_new_privileges),
        ("Landlock", lambda: landlock.restrict(policy.landlock)),
        ("memory hidden", lambda: linux.set_dumpable(False)),
        ("seccomp", lambda: install_filters(policy)),
    )
    for name, step in steps:
        try:
            step()
        except OSError as e:
            raise SandboxSetupFailed(f"{name}: {e}") from e


def hand_over_folders(control: socket.socket) -> None:
    """Send the supervisor descriptors of the sandbox's own folders, so that it can always read what is in them.

    It has to be done before the limit on open files applies, because that also limits the descriptors that all sessions
    of one user have in transit.
    """
    folders = [os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in WRITABLE_FOLDERS]
    socket.send_fds(control, [json.dumps({"folders": len(folders)}).encode()], folders)
    for folder in folders:
        os.close(folder)


def install_filters(policy: SandboxPolicy) -> None:
    """Allow only the listed system calls from now on, and prove it with two harmless calls that both filters refuse.

    The mode in ``/proc`` is no proof: a container's own filter has the same.

    Raises:
        OSError: the filters cannot be installed, or are not in force.
    """
    for program in policy.seccomp:
        linux.install_seccomp(bytes.fromhex(program))
    if policy.seccomp and (errors := linux.errors_of_invalid_calls()) != _REFUSED:
        raise OSError(f"the filters are not in force: invalid calls fail with {errors}, not {_REFUSED}")


def leave_namespaces() -> None:
    """Move to new user, mount, PID, network, IPC and UTS namespaces, in which this user is ``layout.UID``."""
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(_NAMESPACES)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{UID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{UID} {gid} 1")


def build_root(policy: SandboxPolicy) -> None:
    """Build a root of read-only folders and private tmpfs, and move there; nothing else of the host stays visible."""
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    # Open these first: the new root covers everything below /tmp.
    sources = [(os.open(source, os.O_PATH | os.O_CLOEXEC), target) for source, target in policy.read_only]
    linux.mount("tmpfs", _NEW_ROOT, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,nr_inodes=1024,mode=755")
    for t in policy.tmpfs:  # before the folders: Python may be below one of them
        Path(_NEW_ROOT + t.path).mkdir(parents=True, exist_ok=True)
        options = f"size={t.size},nr_inodes={t.inodes},mode={t.mode:o}"
        linux.mount("tmpfs", _NEW_ROOT + t.path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    for handle, target in sources:
        try:
            _bind(f"/proc/self/fd/{handle}", _NEW_ROOT + target)
            linux.make_read_only(_NEW_ROOT + target)
        except FileNotFoundError:
            # A package manager has replaced the file since the zygote started: the session does without it.
            if not target.startswith("/etc/"):
                raise
            Path(_NEW_ROOT + target).unlink()
        os.close(handle)
    for folder in policy.covered:
        linux.mount("tmpfs", _NEW_ROOT + folder, "tmpfs", _EMPTY, "size=4k,mode=555")
    for target, name in policy.links:
        Path(_NEW_ROOT + name).symlink_to(target)
    for path, content in policy.files:
        _write(path, content, 0o644)
    for path, content in policy.programs:
        _write(path, content, 0o755)
    _make_dev(policy)
    _make_proc(policy)
    os.chdir(_NEW_ROOT)
    linux.pivot_root(".", ".")
    linux.umount(".", linux.MNT_DETACH)
    os.chdir("/")
    remount = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("none", "/", None, remount)


def _write(path: str, content: str, mode: int) -> None:
    file = Path(_NEW_ROOT + path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(mode)


def _bind(source: str, target: str) -> None:
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)


def _make_dev(policy: SandboxPolicy) -> None:
    dev = Path(_NEW_ROOT, "dev")
    dev.mkdir(exist_ok=True)
    for name in policy.devices:
        _bind(f"/dev/{name}", str(dev / name))
    pts = dev / "pts"
    pts.mkdir()
    # What is written to a terminal is processed by threads of the kernel, which no cgroup counts: one each at most.
    options = "newinstance,ptmxmode=0666,mode=620,max=4"
    linux.mount("devpts", str(pts), "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, options)
    (dev / "ptmx").symlink_to("pts/ptmx")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (dev / name).symlink_to(f"/proc/self/{target}")


def _make_proc(policy: SandboxPolicy) -> None:
    """Mount a new /proc. If the container's is partly covered, that fails: then provide only what libraries read."""
    proc = _NEW_ROOT + "/proc"
    Path(proc).mkdir()
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    try:
        linux.mount("proc", proc, "proc", flags)
    except PermissionError:
        set_sysctls(policy, "/proc")
        linux.mount("tmpfs", proc, "tmpfs", flags, "size=64k,mode=555")
        for name in (*_HARMLESS_PROC, *policy.proc_shown):
            if Path(f"/proc/{name}").exists():
                _bind(f"/proc/{name}", f"{proc}/{name}")
        Path(proc, "self").mkdir()
        # TensorFlow aborts the process if it cannot read its own name.
        Path(proc, "self", "exe").symlink_to(Path(sys.executable).resolve())
        Path(proc, "self", "cmdline").write_text("python\0")
        linux.make_read_only(proc)
    else:
        set_sysctls(policy, proc)
        # Nothing in it has to be written. A process could make its neighbors die first (oom_score_adj), for example.
        if policy.proc_writable:
            _protect_machine_files(Path(proc))
        else:
            linux.make_read_only(proc)
        _cover_proc(policy, proc)


def _protect_machine_files(proc: Path) -> None:
    """Make everything in ``proc`` read-only except for the folders of processes."""
    for entry in proc.iterdir():
        if not entry.name.isdecimal() and not entry.is_symlink():
            linux.mount(str(entry), str(entry), None, linux.MS_BIND)
            linux.make_read_only(str(entry))


def set_sysctls(policy: SandboxPolicy, proc: str) -> None:
    """Set limits of this user namespace. A container's /proc/sys may be read-only, and an old kernel may lack some."""
    for name, value in policy.sysctls:
        with contextlib.suppress(OSError):
            Path(proc, "sys", name).write_text(value)


def _cover_proc(policy: SandboxPolicy, proc: str) -> None:
    for name in policy.proc_hidden:
        with contextlib.suppress(FileNotFoundError):
            linux.mount(f"{_NEW_ROOT}/dev/null", f"{proc}/{name}", None, linux.MS_BIND)
    for name in policy.proc_covered:
        with contextlib.suppress(FileNotFoundError):
            linux.mount("tmpfs", f"{proc}/{name}", "tmpfs", _EMPTY, "size=4k,mode=555")


def set_environment(policy: SandboxPolicy) -> None:
    """Clear the host's environment, except for the variables that TensorFlow was set up with."""
    keep = {k: v for k, v in os.environ.items() if k.startswith(("TF_", "KERAS_", "OPENBLAS_", "OMP_"))}
    os.environ.clear()
    os.environ.update(keep)
    os.environ.update(dict(policy.environment))  # for pairs, Python would ask every kind of mapping whether it is one
    os.chdir(os.environ["HOME"])
    os.umask(0o022)


def set_limits(policy: SandboxPolicy) -> None:
    """Apply the rlimits, never above the host's. SIGXCPU comes before SIGKILL, so that the cause is known."""
    for name, value in policy.rlimits:
        number = getattr(resource, name)
        allowed = resource.getrlimit(number)[1]
        most = sys.maxsize if allowed == resource.RLIM_INFINITY else allowed
        if name == "RLIMIT_NOFILE":  # see server.raise_open_files_limit
            most -= most // 2
        grace = _CPU_GRACE_S if name == "RLIMIT_CPU" else 0
        resource.setrlimit(number, (min(value, most), min(value + grace, most)))
