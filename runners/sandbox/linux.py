"""The few kernel calls that Python 3.11 does not wrap, each as a typed function that raises OSError.

The library is loaded at import, before the zygote forks, so that children do not have to look anything up.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REMOUNT, MS_RDONLY = 32, 1
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
_MOUNT_FLAGS = {"noexec": MS_NOEXEC, "nosymfollow": 256, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
"""Options of a mount that a remount has to repeat, because it would or must not drop them."""

_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAPBSET_DROP = 1, 2, 4, 8, 24
_PR_SET_NO_NEW_PRIVS, _PR_GET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 39, 47, 4
_PR_SET_CHILD_SUBREAPER = 36
_NR = {
    "x86_64": {"pivot_root": 155, "seccomp": 317, "capset": 126, "setresuid": 117},
    "aarch64": {"pivot_root": 41, "seccomp": 277, "capset": 91, "setresuid": 147},
}
_NR_MOUNT_SETATTR, _NR_LANDLOCK_CREATE_RULESET = 442, 444
_LANDLOCK_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_SECCOMP_SET_MODE_FILTER, _NO_SECCOMP_OPERATION, _F_NOTIFY = 1, 1000, 1026
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)
_fork = ctypes.PyDLL(None, use_errno=True).fork  # keeps Python's lock, as the child has to
_numbers = _NR.get(os.uname().machine, _NR["x86_64"])


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move to new namespaces of the kinds given by ``CLONE_NEW*`` flags."""
    _check(_libc.unshare(flags), "unshare")


def join_namespace(descriptor: int, flag: int) -> None:
    """Move to the namespace of a descriptor; ``flag`` is its kind. Of a PID namespace, only later children are part."""
    _check(_libc.setns(descriptor, flag), "setns")


def fork_quietly() -> int:
    """Fork as C does; needs one thread. Returns as ``os.fork``.

    Python's own fork calls what libraries have registered, such as to reset locks and to reseed random numbers. That
    takes a millisecond, and copies a megabyte of memory, in each process.
    """
    pid: int = _fork()
    _check(pid, "fork")
    return pid


def run_in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process; returns the number of its OSError, 0 if it raised none."""
    child = os.fork()
    if child == 0:
        number = errno.EIO
        try:
            work()
            number = 0
        except OSError as e:
            number = e.errno or errno.EIO
        finally:
            os._exit(number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def user_outside() -> int:
    """The user that this namespace's root is outside of it; 0 for root itself."""
    inside, outside, _ = map(int, Path("/proc/self/uid_map").read_text().split()[:3])
    return outside if inside == 0 else 0


def enter_user_namespace(users: str) -> None:
    """Enter a new user namespace with these users, and groups of the same numbers. Needs root, and one thread.

    Args:
        users: lines as in ``uid_map``.
    """
    entering = os.getpid()
    wait, entered = os.pipe()

    def map_users() -> None:
        os.read(wait, 1)
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{entering}/{kind}").write_text(users)

    mapper = os.fork()
    if mapper == 0:  # it still has the rights that this process loses
        os._exit(run_in_child(map_users))
    try:
        unshare(CLONE_NEWUSER)
    finally:
        os.write(entered, b"x")
        os.close(entered)
        os.close(wait)
        number = os.waitstatus_to_exitcode(os.waitpid(mapper, 0)[1])
    if number:
        raise OSError(number, f"mapping users: {os.strerror(number)}")


@contextmanager
def effective_user(uid: int) -> Iterator[None]:
    """Be another user in this thread only; ``os.seteuid`` changes all threads of a process."""
    before, with_parent = os.geteuid(), ctypes.c_int()
    _check(_libc.prctl(_PR_GET_PDEATHSIG, ctypes.byref(with_parent), 0, 0, 0), "PR_GET_PDEATHSIG")
    _check(_libc.syscall(_numbers["setresuid"], -1, uid, -1), "setresuid")
    try:
        yield
    finally:
        _check(_libc.syscall(_numbers["setresuid"], -1, before, -1), "setresuid")
        die_with_parent(with_parent.value)  # a change of user forgets it


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2)."""
    arguments = (source.encode(), target.encode(), kind.encode() if kind else None)
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def umount(target: str, flags: int = 0) -> None:
    """umount2(2)."""
    _check(_libc.umount2(target.encode(), flags), f"umount {target}")


def make_read_only(target: str) -> None:
    """Make ``target`` and every mount below it read-only, without set-uid programs or devices."""
    try:
        _set_read_only(target)
    except OSError as e:
        if e.errno != errno.ENOSYS:
            raise
        _remount_read_only(target)


def _set_read_only(target: str) -> None:
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, 0, 0, 0)
    arguments = (_NR_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, attributes, len(attributes))
    _check(_libc.syscall(*arguments), f"mount_setattr {target}")


def _remount_read_only(target: str) -> None:
    """Remount one by one if the kernel has no mount_setattr (before Linux 5.12, and in gVisor)."""
    real = os.path.realpath(target)
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    options = {_unescaped(fields[4]): fields[5].split(",") for fields in mounts}
    for point, present in options.items():
        if point == real or point.startswith(real + "/"):
            kept = sum(flag for name, flag in _MOUNT_FLAGS.items() if name in present)
            mount("none", point, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def _unescaped(point: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2)."""
    _check(_libc.syscall(_numbers["pivot_root"], new.encode(), old.encode()), "pivot_root")


def sethostname(name: str) -> None:
    """Set the host name of this UTS namespace."""
    _check(_libc.sethostname(name.encode(), len(name.encode())), "sethostname")


def loopback_up() -> None:
    """Bring up the loopback of this network namespace, its only interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = fcntl.ioctl(s, _SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        flags = struct.unpack_from("16sH", request)[1]
        if flags & _IFF_UP:
            return
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | _IFF_UP))


def set_dumpable(dumpable: bool = True) -> None:
    """Make this process own its /proc files (required after a change of user), or hide them from the same user."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "PR_SET_DUMPABLE")


def die_with_parent(signum: int) -> None:
    """Receive ``signum`` when the parent process ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0), "PR_SET_PDEATHSIG")


def become_subreaper() -> None:
    """Adopt orphaned descendants as children of this process."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER")


def drop_capabilities() -> None:
    """Drop every capability, for this process and its descendants."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # the first capability that this kernel does not know
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    set_capabilities(0)


def switch_user(user: int, capabilities: int = 0, *, dumpable: bool = True) -> None:
    """Permanently become this user and group, with only these capabilities (bits as in linux/capability.h).

    Unless it is ``dumpable``, the user's other processes cannot access this one until it becomes another program.
    """
    _check(_libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS")
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    set_capabilities(capabilities)
    set_dumpable(dumpable)


def set_capabilities(capabilities: int) -> None:
    """Keep only these capabilities in this process; programs that it starts inherit none."""
    header = struct.pack("=Ii", 0x20080522, 0)
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    _check(_libc.syscall(_numbers["capset"], header, struct.pack("=6I", low, low, 0, high, high, 0)), "capset")


def no_new_privileges() -> None:
    """Keep programs started from here from gaining rights by set-uid bits or file capabilities."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")


def has_no_new_privileges() -> bool:
    """Whether no program that is started from here can gain rights; a filter may be installed only then."""
    return bool(_libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)


def install_seccomp(program: bytes) -> None:
    """Load a compiled filter (an array of struct sock_filter, 8 bytes each)."""
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(buffer))
    _check(_libc.syscall(_numbers["seccomp"], _SECCOMP_SET_MODE_FILTER, 0, fprog), "seccomp")


def install_service_filter(program: bytes) -> None:
    """Load the filter of a service, and prove it with a harmless call that only it refuses.

    Raises:
        OSError: the filter cannot be installed, or is not in force.
    """
    install_seccomp(program)
    error = ctypes.get_errno() if _libc.vmsplice(-1, None, ctypes.c_size_t(0), 0) < 0 else 0
    if error != errno.EPERM:
        raise OSError(error, f"the filter is not in force: an invalid vmsplice fails with {error}, not {errno.EPERM}")


def errors_of_invalid_calls() -> tuple[int, int]:
    """The errors of fcntl and seccomp with invalid arguments: EBADF and EINVAL, unless a filter answers first."""
    first = ctypes.get_errno() if _libc.fcntl(-1, _F_NOTIFY, 0) < 0 else 0
    second = ctypes.get_errno() if _libc.syscall(_numbers["seccomp"], _NO_SECCOMP_OPERATION, 0, None) < 0 else 0
    return first, second


def landlock_abi() -> int:
    """The Landlock ABI version; 0 if the kernel lacks it or it is disabled."""
    return max(0, int(_libc.syscall(_NR_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)))


def landlock_ruleset(rights: int, scopes: int, abi: int) -> int:
    """Create a ruleset that will restrict these rights on files and these scopes; returns its descriptor."""
    attributes = struct.pack("=QQQ", rights, 0, scopes)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    fd = _libc.syscall(_NR_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    _check(fd, "landlock_create_ruleset")
    return int(fd)


def landlock_allow(ruleset: int, handle: int, rights: int) -> None:
    """Allow rights on an open file, or on an open folder and everything below it."""
    beneath = struct.pack("=Qi", rights, handle)
    _check(
        _libc.syscall(_NR_LANDLOCK_CREATE_RULESET + 1, ruleset, _LANDLOCK_PATH_BENEATH, beneath, 0), "landlock_add_rule"
    )


def landlock_restrict(ruleset: int, flags: int) -> None:
    """Apply a ruleset to this process."""
    _check(_libc.syscall(_NR_LANDLOCK_CREATE_RULESET + 2, ruleset, flags), "landlock_restrict_self")
