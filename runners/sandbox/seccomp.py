"""The system calls that a session may make, as data, compiled by libseccomp.

There are three answers. Calls that learners' programs need are allowed. Calls that reach into other processes, other
namespaces or rarely needed parts of the kernel fail with EPERM. All other calls, including future ones, do not exist
(ENOSYS), so that the C library uses an older call. 32-bit and x32 calls kill the process.

The kernel runs two programs and takes the stricter answer: one checks the calls, the other the forbidden arguments.
Calls that are allowed with any arguments are looked up in a bitmap and run neither program.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

_INT, _LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
"""The kernel reads only these bits of an int; a program may set the upper ones to anything."""

ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "read and write what is open": (
            "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close close_range "
            "dup dup2 dup3 fcntl ioctl flock fsync fdatasync sync_file_range fadvise64 readahead fallocate ftruncate "
            "sendfile splice tee copy_file_range"
        ),
        "find, make and change files": (
            "open openat creat access faccessat faccessat2 stat fstat lstat newfstatat statx statfs fstatfs "
            "getdents getdents64 readlink readlinkat getcwd chdir fchdir umask truncate mkdir mkdirat rmdir mknod "
            "mknodat link linkat symlink symlinkat unlink unlinkat rename renameat renameat2 chmod fchmod fchmodat "
            "chown fchown lchown fchownat utime utimes utimensat futimesat"
        ),
        "extended attributes, which cp and git copy": (
            "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr "
            "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr"
        ),
        "wait for files, timers and signals": (
            "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 "
            "eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime "
            "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"
        ),
        "memory": (
            "brk mmap munmap mprotect mremap madvise msync mincore mlock mlock2 munlock mlockall munlockall "
            "memfd_create membarrier pkey_alloc pkey_free pkey_mprotect get_mempolicy"
        ),
        "threads": (
            "clone futex futex_waitv set_robust_list get_robust_list set_tid_address gettid rseq arch_prctl exit"
        ),
        "processes": (
            "fork vfork execve execveat exit_group wait4 waitid getpid getppid getpgid getpgrp setpgid getsid setsid "
            "pidfd_open pidfd_send_signal kill tkill tgkill getrlimit setrlimit getrusage times capget"
        ),
        "who one is, and to become what one is already": (
            "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid "
            "setresgid setgroups setfsuid setfsgid"
        ),
        "signals": (
            "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo "
            "rt_tgsigqueueinfo sigaltstack pause restart_syscall"
        ),
        "the scheduler": (
            "sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler "
            "sched_setscheduler sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min "
            "sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set getcpu"
        ),
        "clocks and timers": (
            "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer "
            "timer_create timer_settime timer_gettime timer_getoverrun timer_delete"
        ),
        "facts of the machine, and randomness": "uname sysinfo getrandom",
        "pipes and sockets; which sockets there are is said below": (
            "pipe pipe2 bind listen accept accept4 connect getsockname getpeername setsockopt getsockopt shutdown "
            "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg"
        ),
    }
)

DENIED: Mapping[str, str] = MappingProxyType(
    {
        "other worlds: mounts, namespaces, roots": (
            "mount umount2 pivot_root chroot setns unshare fsopen fsconfig fsmount fspick open_tree move_mount "
            "mount_setattr name_to_handle_at open_by_handle_at sethostname setdomainname"
        ),
        "other processes": (
            "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp"
        ),
        "large, young or rarely needed parts of the kernel": (
            "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register add_key request_key "
            "keyctl fanotify_init fanotify_mark lookup_dcookie vmsplice"
        ),
        "the machine itself": (
            "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff syslog acct "
            "quotactl quotactl_fd settimeofday clock_settime clock_adjtime adjtimex iopl ioperm modify_ldt vhangup "
            "sync syncfs"
        ),
        "where memory lies": "move_pages migrate_pages mbind set_mempolicy set_mempolicy_home_node",
        "rights": "capset",
    }
)

MISSING = (
    "clone3 openat2 seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self io_setup "
    "memfd_secret shmget shmat msgget semget mq_open"
)
"""Calls that are missing on purpose. The arguments of clone3 and openat2 are in memory, which no filter can read, and
libraries fall back to clone and openat. Programs that would sandbox themselves continue without. io_setup uses up a
counter of the whole machine. Secret memory is locked memory. System V's objects belong to no process and no folder."""


@dataclass(frozen=True, slots=True)
class MaskedEqual:
    """``argument & mask == value``; arguments are counted from 0."""

    argument: int
    value: int
    mask: int = _INT


@dataclass(frozen=True, slots=True)
class GreaterThan:
    """``argument > value``, all 64 bits compared."""

    argument: int
    value: int


@dataclass(frozen=True, slots=True)
class LessThan:
    """``argument < value``, all 64 bits compared."""

    argument: int
    value: int


Condition = MaskedEqual | GreaterThan | LessThan


@dataclass(frozen=True, slots=True)
class DenyRule:
    """A call that fails with ``error`` if every condition holds; with 0 it does nothing and reports success."""

    error: int
    call: str
    conditions: tuple[Condition, ...]


_PRCTL_HARMLESS = {
    "PR_SET_PDEATHSIG": 1,
    "PR_GET_PDEATHSIG": 2,
    "PR_GET_DUMPABLE": 3,
    "PR_GET_KEEPCAPS": 7,
    "PR_GET_TIMING": 13,
    "PR_SET_NAME": 15,
    "PR_GET_NAME": 16,
    "PR_GET_SECCOMP": 21,
    "PR_CAPBSET_READ": 23,
    "PR_GET_TSC": 25,
    "PR_GET_SECUREBITS": 27,
    "PR_SET_TIMERSLACK": 29,
    "PR_GET_TIMERSLACK": 30,
    "PR_SET_CHILD_SUBREAPER": 36,
    "PR_GET_CHILD_SUBREAPER": 37,
    "PR_SET_NO_NEW_PRIVS": 38,
    "PR_GET_NO_NEW_PRIVS": 39,
    "PR_GET_TID_ADDRESS": 40,
    "PR_SET_THP_DISABLE": 41,
    "PR_GET_THP_DISABLE": 42,
    "PR_SVE_SET_VL": 50,
    "PR_SVE_GET_VL": 51,
    "PR_GET_SPECULATION_CTRL": 52,
    "PR_PAC_RESET_KEYS": 54,
    "PR_GET_TAGGED_ADDR_CTRL": 56,
}
_PR_SET_DUMPABLE = 4
_RLIMIT_CORE = 4
_PERSONALITIES = (0, 0xFFFFFFFF)
"""Linux's own personality, and the query for the current one."""

_TYPE = 0xF
"""The bits of a socket's type; the rest are flags."""
_STREAM, _DATAGRAM, _RAW, _PACKETS = 1, 2, 3, 5
_TCP, _UDP = 6, 17
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_INTERNET = tuple(
    (MaskedEqual(0, family), MaskedEqual(1, kind, _TYPE), MaskedEqual(2, protocol))
    for family in (socket.AF_INET, socket.AF_INET6)
    for kind, protocol in ((_STREAM, 0), (_STREAM, _TCP), (_DATAGRAM, 0), (_DATAGRAM, _UDP))
)
_UNIX = tuple((MaskedEqual(0, socket.AF_UNIX), MaskedEqual(1, kind, _TYPE)) for kind in (_STREAM, _DATAGRAM, _PACKETS))
_NETLINK_ROUTE = tuple(
    (MaskedEqual(0, socket.AF_NETLINK), MaskedEqual(1, kind, _TYPE), MaskedEqual(2, 0)) for kind in (_DATAGRAM, _RAW)
)

ALLOWED_ARGUMENTS: Mapping[str, tuple[tuple[Condition, ...], ...]] = MappingProxyType(
    {
        # Libraries list the session's own interfaces with netlink's routes. SCTP, DCCP, MPTCP and the like are refused.
        "socket": (*_UNIX, *_INTERNET, *_NETLINK_ROUTE),
        "socketpair": ((MaskedEqual(0, socket.AF_UNIX),),),
        # A process may not hide from the supervisor, nor trace, map or merge memory.
        "prctl": (
            *((MaskedEqual(0, n),) for n in _PRCTL_HARMLESS.values()),
            (MaskedEqual(0, _PR_SET_DUMPABLE), MaskedEqual(1, 1)),
        ),
        "personality": tuple((MaskedEqual(0, n),) for n in _PERSONALITIES),
        # PID 1 has the same user: no process may set its limits, nor its own limit of core files (see the policy).
        "prlimit64": (
            *((MaskedEqual(0, 0), MaskedEqual(1, resource)) for resource in range(16) if resource != _RLIMIT_CORE),
            (MaskedEqual(0, 0), MaskedEqual(1, _RLIMIT_CORE), MaskedEqual(2, 0, _LONG)),
        ),
    }
)
"""Calls that exist only in these forms."""

_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWTIME|NEWNS|NEWCGROUP|NEWUTS|NEWIPC|NEWUSER|NEWPID|NEWNET
_TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D
_MAP_HUGETLB, _MFD_HUGETLB = 0x40000, 0x4
_TYPE_OF_FILE, _CHARACTERS, _BLOCKS = 0o170000, 0o020000, 0o060000
_SOL_SOCKET, _SOL_TCP, _TCP_ULP = 1, 6, 31
_SOL_IP, _SOL_UDP, _SOL_IPV6, _SOL_UDPLITE = 0, 17, 41, 136
_SO_RCVBUF = 8
_F_SETLEASE, _F_NOTIFY, _MADV_MERGEABLE = 1024, 1026, 12
_F_SETLK, _F_SETLKW, _F_OFD_SETLK, _F_OFD_SETLKW = 6, 7, 37, 38
_DONE_NOTHING = 0
_F_SETFL, _FADV_DONTNEED, _RWF_DONTCACHE, _MS_SYNC = 4, 4, 0x80, 4
_SCHED_OTHER, _PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 0, 1
_SO_ATTACH = (26, 50, 51, 52)  # FILTER, BPF, REUSEPORT_CBPF, REUSEPORT_EBPF
_MCAST_JOIN = (42, 43, 46, 48)  # JOIN_GROUP, BLOCK_SOURCE, JOIN_SOURCE_GROUP, MSFILTER
_UNCOUNTED_OPTIONS = (
    *((_SOL_SOCKET, option) for option in (37, 60, 61, 65)),  # TIMESTAMPING, ZEROCOPY, TXTIME, TIMESTAMPING_NEW
    *((_SOL_TCP, option) for option in (14, 32, 38)),  # MD5SIG, MD5SIG_EXT, AO_ADD_KEY
    *((level, option) for level in (_SOL_UDP, _SOL_UDPLITE) for option in (1, 100)),  # CORK, ENCAP
    *((_SOL_IP, option) for option in (35, 38, 39, 41, *_MCAST_JOIN)),  # ADD_MEMBERSHIP, BLOCK_SOURCE, …, MSFILTER
    *((_SOL_IPV6, option) for option in (20, 27, 32, *_MCAST_JOIN)),  # ADD_MEMBERSHIP, JOIN_ANYCAST, FLOWLABEL_MGR
)
"""Options by which a socket keeps memory of the kernel's that no cgroup counts, such as 128 KiB of keys, or what it
has sent. ``usage.py`` limits the number of sockets; this keeps what each of them can hold small."""

DENY_RULES: tuple[DenyRule, ...] = (
    # new namespaces
    *(DenyRule(errno.EPERM, "clone", (MaskedEqual(0, 1 << n, 1 << n),)) for n in range(32) if _NEW_NAMESPACES & 1 << n),
    # typing into a terminal, its line disciplines, the console
    *(DenyRule(errno.EPERM, "ioctl", (MaskedEqual(1, n),)) for n in (_TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS)),
    # the name of the error for a family of sockets that is not there
    *(
        DenyRule(errno.EAFNOSUPPORT, "socket", (MaskedEqual(0, n),))
        for n in range(max(_FAMILIES))
        if n not in _FAMILIES
    ),
    DenyRule(errno.EAFNOSUPPORT, "socket", (GreaterThan(0, max(_FAMILIES)),)),
    # programs for the kernel's own machine, and protocols above TCP
    *(DenyRule(errno.EPERM, "setsockopt", (MaskedEqual(1, _SOL_SOCKET), MaskedEqual(2, n))) for n in _SO_ATTACH),
    DenyRule(errno.EPERM, "setsockopt", (MaskedEqual(1, _SOL_TCP), MaskedEqual(2, _TCP_ULP))),
    # what a socket would keep beside its data: keys, sent packets and their timestamps, multicast groups
    *(
        DenyRule(errno.ENOPROTOOPT, "setsockopt", (MaskedEqual(1, level), MaskedEqual(2, option)))
        for level, option in _UNCOUNTED_OPTIONS
    ),
    # The size of the queue for received data is also that of the queue for timestamps of what was sent, which a message
    # may ask for by itself. Programs may give up if they cannot set it.
    DenyRule(_DONE_NOTHING, "setsockopt", (MaskedEqual(1, _SOL_SOCKET), MaskedEqual(2, _SO_RCVBUF))),
    # huge pages, which belong to the whole machine and count in nobody's memory
    DenyRule(errno.ENOMEM, "mmap", (MaskedEqual(3, _MAP_HUGETLB, _MAP_HUGETLB),)),
    DenyRule(errno.ENOMEM, "memfd_create", (MaskedEqual(1, _MFD_HUGETLB, _MFD_HUGETLB),)),
    # leases, by which a mere reader of a file makes its owner wait; signals from folders, which nothing limits
    *(DenyRule(errno.EPERM, "fcntl", (MaskedEqual(1, n),)) for n in (_F_SETLEASE, _F_NOTIFY)),
    # locks of ranges of bytes: each takes memory of the kernel's that no cgroup counts, and a file takes any number.
    # Those of POSIX seem to succeed: SQLite gives up without them, in every program that uses it. flock remains: one
    # for each open file
    *(DenyRule(_DONE_NOTHING, "fcntl", (MaskedEqual(1, n),)) for n in (_F_SETLK, _F_SETLKW)),
    *(DenyRule(errno.ENOLCK, "fcntl", (MaskedEqual(1, n),)) for n in (_F_OFD_SETLK, _F_OFD_SETLKW)),
    # The disk of the host, on which the database waits. One session that reads past the page cache takes all of it, and
    # O_DIRECT has another number on each architecture. Whoever may read a file may also drop it from the page cache of
    # all, and have the disk write out what it holds; a session's own files are in memory.
    *(
        DenyRule(errno.EINVAL, call, (*conditions, MaskedEqual(argument, os.O_DIRECT, os.O_DIRECT)))
        for call, argument, conditions in (
            ("open", 1, ()),
            ("openat", 2, ()),
            ("fcntl", 2, (MaskedEqual(1, _F_SETFL),)),
        )
    ),
    DenyRule(_DONE_NOTHING, "fadvise64", (MaskedEqual(3, _FADV_DONTNEED),)),
    DenyRule(errno.EOPNOTSUPP, "preadv2", (MaskedEqual(5, _RWF_DONTCACHE, _RWF_DONTCACHE),)),  # as before Linux 6.14
    DenyRule(_DONE_NOTHING, "msync", (MaskedEqual(2, _MS_SYNC, _MS_SYNC),)),
    *(DenyRule(_DONE_NOTHING, call, ()) for call in ("fsync", "fdatasync", "sync_file_range")),
    # memory merging, which leaks content through the time of writes
    DenyRule(errno.EINVAL, "madvise", (MaskedEqual(2, _MADV_MERGEABLE),)),
    # the scheduling of other processes: PID 1 has the same user. libzmq gives its threads the ordinary policy by number
    *(
        DenyRule(errno.EPERM, call, (GreaterThan(0, 0),))
        for call in ("sched_setaffinity", "sched_setattr", "sched_setparam")
    ),
    DenyRule(errno.EPERM, "sched_setscheduler", (GreaterThan(0, 0), GreaterThan(1, _SCHED_OTHER))),
    *(
        DenyRule(errno.EPERM, call, (GreaterThan(argument, most),))
        for call, process in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS))
        for argument, most in ((0, process), (1, 0))
    ),
    # core files: see the policy
    DenyRule(errno.EPERM, "setrlimit", (MaskedEqual(0, _RLIMIT_CORE),)),
    # devices
    *(DenyRule(errno.EPERM, "mknod", (MaskedEqual(1, kind, _TYPE_OF_FILE),)) for kind in (_CHARACTERS, _BLOCKS)),
    *(DenyRule(errno.EPERM, "mknodat", (MaskedEqual(2, kind, _TYPE_OF_FILE),)) for kind in (_CHARACTERS, _BLOCKS)),
)
"""The forbidden arguments of calls."""

NO_NAMELESS_FILES = (DenyRule(errno.EPERM, "memfd_create", ()),)
"""Rules for a session without a memory cgroup: nothing else counts files that no process has mapped."""


def deny_other_users(users: range) -> tuple[DenyRule, ...]:
    """Rules that let a process become only one of ``users``, and above all not root."""
    others = "setuid setgid setreuid setregid setfsuid setfsgid setgroups"
    return (
        *(DenyRule(errno.EPERM, call, ()) for call in others.split()),
        *(
            DenyRule(errno.EPERM, call, (condition,))
            for call in ("setresuid", "setresgid")
            for argument in range(3)
            for condition in (LessThan(argument, users[0]), GreaterThan(argument, users[-1]))
        ),
    )


_NEEDED_TO_MAKE_SANDBOXES = ("other worlds: mounts, namespaces, roots", "where memory lies", "rights")
"""The groups of ``DENIED`` that the supervisor's filter leaves out: it is in force in all that it starts."""

_BINARY_TREE = 2
_UNKNOWN_CALL = -1
"""The number of a call that libseccomp does not know; those that another architecture has are smaller."""
_YOUNG_CALLS = {"quotactl_fd": 443, "process_mrelease": 448, "set_mempolicy_home_node": 450}
"""Calls that a supported libseccomp (2.5) may not know; such calls have the same number on every architecture."""


class LibseccompMissing(RuntimeError):
    """libseccomp is not installed."""


def calls_in(groups: Mapping[str, str]) -> list[str]:
    """The call names in ``ALLOWED`` or ``DENIED``."""
    return [name for names in groups.values() for name in names.split()]


@cache
def compile_filters(architecture: str = "native") -> tuple[bytes, bytes]:
    """Compile the two filters, for arguments and for calls; a process installs both, in this order.

    Args:
        architecture: ``native``, ``x86_64`` or ``aarch64``.

    Returns:
        Arrays of ``struct sock_filter``.

    Raises:
        RuntimeError: libseccomp is not installed, or cannot refuse a call that must be refused; the message says what
            to do.
    """
    libseccomp = _library()
    calls = _empty(libseccomp, libseccomp.ERRNO(errno.ENOSYS), architecture)
    for name in calls_in(ALLOWED):
        _add(calls, libseccomp.ALLOW, name)
    for name in calls_in(DENIED):
        _add(calls, libseccomp.ERRNO(errno.EPERM), name)
    for name, forms in ALLOWED_ARGUMENTS.items():
        for form in forms:
            _add(calls, libseccomp.ALLOW, name, *(_argument(libseccomp, c) for c in form))
    arguments = _empty(libseccomp, libseccomp.ALLOW, architecture)
    for never in DENY_RULES:
        f = calls if never.call in ALLOWED_ARGUMENTS else arguments  # of two refusals, that of the later filter counts
        _forbid(libseccomp, f, never, architecture)
    return _exported(arguments), _exported(calls)


def compile_deny_rules(rules: tuple[DenyRule, ...], architecture: str = "native") -> bytes:
    """Compile a filter that allows everything else. Raises the same errors as ``compile_filters``."""
    libseccomp = _library()
    f = _empty(libseccomp, libseccomp.ALLOW, architecture)
    for never in rules:
        _forbid(libseccomp, f, never, architecture)
    return _exported(f)


def compile_service_filter(*, makes_sandboxes: bool) -> bytes:
    """Compile the filter of the supervisor or the web application, which read what learners send.

    It denies what nothing there needs, and everything that they start inherits it.

    Raises:
        LibseccompMissing: libseccomp is not installed.
        RuntimeError: it cannot refuse a call that must be refused; the message says what to do.
    """
    needed = _NEEDED_TO_MAKE_SANDBOXES if makes_sandboxes else ()
    denied = calls_in({group: names for group, names in DENIED.items() if group not in needed})
    return compile_deny_rules(tuple(DenyRule(errno.EPERM, name, ()) for name in denied))


def _library() -> Any:
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError) as e:
        raise LibseccompMissing("libseccomp is missing: install the package libseccomp2") from e
    return pyseccomp


def _forbid(libseccomp: Any, f: Any, never: DenyRule, architecture: str) -> None:
    """Add a required rule: without it the call would be allowed."""
    number = libseccomp.resolve_syscall(_architecture(libseccomp, architecture), never.call)
    if number < _UNKNOWN_CALL:
        return  # this architecture does not have the call
    call = _YOUNG_CALLS.get(never.call, never.call) if number == _UNKNOWN_CALL else never.call
    try:
        conditions = (_argument(libseccomp, c) for c in never.conditions)
        f.add_rule(libseccomp.ERRNO(never.error), call, *conditions)
    except OSError as e:
        raise RuntimeError(f"libseccomp cannot refuse {never.call}: {e}; install a newer libseccomp2") from e


def _empty(libseccomp: Any, default: int, architecture: str) -> Any:
    f = libseccomp.SyscallFilter(default)
    f.set_attr(libseccomp.Attr.ACT_BADARCH, libseccomp.KILL_PROCESS)  # by default, one thread dies and others hang
    with contextlib.suppress(OSError):  # libseccomp before 2.5 makes a list
        f.set_attr(libseccomp.Attr.CTL_OPTIMIZE, _BINARY_TREE)
    wanted = _architecture(libseccomp, architecture)
    if wanted != libseccomp.system_arch():
        f.add_arch(wanted)
        f.remove_arch(libseccomp.Arch.NATIVE)
    return f


def _architecture(libseccomp: Any, name: str) -> Any:
    known = {"x86_64": libseccomp.Arch.X86_64, "aarch64": libseccomp.Arch.AARCH64}
    return known.get(name) or libseccomp.system_arch()


def _add(f: Any, action: int, name: str, *arguments: Any) -> None:
    """Add a rule that may be missing: this architecture or this libseccomp may not have the call, which then does not
    exist for a session either."""
    with contextlib.suppress(OSError):
        f.add_rule(action, name, *arguments)


def _argument(libseccomp: Any, condition: Condition) -> Any:
    match condition:
        case GreaterThan(argument, value):
            return libseccomp.Arg(argument, libseccomp.GT, value)
        case LessThan(argument, value):
            return libseccomp.Arg(argument, libseccomp.LT, value)
    return libseccomp.Arg(condition.argument, libseccomp.MASKED_EQ, condition.mask, condition.value)


def _exported(f: Any) -> bytes:
    with tempfile.TemporaryFile() as out:
        f.export_bpf(out)
        out.seek(0)
        return out.read()
