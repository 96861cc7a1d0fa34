"""How the filters answer system calls, evaluated as the kernel does."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections import Counter

import pyseccomp
import pytest

from runners.sandbox.seccomp import (
    ALLOWED,
    ALLOWED_ARGUMENTS,
    DENIED,
    DENY_RULES,
    MISSING,
    DenyRule,
    calls_in,
    compile_deny_rules,
    compile_filters,
    compile_service_filter,
    deny_other_users,
)
from tests.factories.bpf_interpreter import AARCH64, ALLOW, ERRNO, I386, KILL, X86_64, evaluate_filter

ARCHITECTURES = {"x86_64": (X86_64, pyseccomp.Arch.X86_64), "aarch64": (AARCH64, pyseccomp.Arch.AARCH64)}
EVERY_CALL = [*calls_in(ALLOWED), *calls_in(DENIED), *MISSING.split(), *ALLOWED_ARGUMENTS]
SCHEDULING = ("sched_setaffinity", "sched_setattr", "sched_setparam")
ABOVE = 1 << 32
"""A bit that the kernel does not read of an int."""


def answer(call: str | int, *arguments: int, on: str = "x86_64") -> int:
    """0 if both filters allow the call, else the error; if both refuse, that of the later filter."""
    audit, arch = ARCHITECTURES[on]
    number = call if isinstance(call, int) else pyseccomp.resolve_syscall(arch, call)
    verdicts = [evaluate_filter(program, audit, number, *arguments) for program in compile_filters(on)]
    assert {v & 0xFFFF0000 for v in verdicts} <= {ALLOW, ERRNO}
    return ([0] + [v & 0xFFFF for v in verdicts if v != ALLOW])[-1]


def exists(call: str, on: str) -> bool:
    return int(pyseccomp.resolve_syscall(ARCHITECTURES[on][1], call)) >= 0


def test_the_first_filter_lets_the_second_be_installed() -> None:
    first, second = compile_filters("x86_64")
    install = pyseccomp.resolve_syscall(pyseccomp.Arch.X86_64, "seccomp")
    assert evaluate_filter(first, X86_64, install, 1, 0) == ALLOW
    assert evaluate_filter(second, X86_64, install, 1, 0) == ERRNO | errno.ENOSYS


@pytest.mark.parametrize("on", ARCHITECTURES)
def test_each_filter_is_whole_instructions_and_not_too_many_for_the_kernel(on: str) -> None:
    for program in compile_filters(on):
        assert len(program) % 8 == 0
        assert 20 < len(program) // 8 <= 4096


def test_no_call_is_named_twice() -> None:
    assert [name for name, times in Counter(EVERY_CALL).items() if times > 1] == []


def test_every_name_is_that_of_a_call() -> None:
    assert [name for name in EVERY_CALL if not exists(name, "x86_64") and not exists(name, "aarch64")] == []


@pytest.mark.parametrize("on", ARCHITECTURES)
def test_calls_are_allowed_refused_or_missing_as_listed(on: str) -> None:
    here = [name for name in EVERY_CALL if exists(name, on)]
    assert len(here) > 200
    answers = {name: answer(name, on=on) for name in here if name not in ALLOWED_ARGUMENTS}
    expected = dict.fromkeys(calls_in(ALLOWED), 0) | dict.fromkeys(calls_in(DENIED), errno.EPERM)
    expected |= dict.fromkeys(MISSING.split(), errno.ENOSYS)
    assert answers == {name: expected[name] for name in answers}


@pytest.mark.parametrize("number", [334 + 120, 1000, 0x3FFFFFFF])
def test_a_call_not_yet_known_does_not_exist(number: int) -> None:
    assert answer(number) == errno.ENOSYS


@pytest.mark.parametrize("on", ARCHITECTURES)
def test_calls_of_another_architecture_kill(on: str) -> None:
    for program in compile_filters(on):
        assert evaluate_filter(program, I386, 20) == KILL


def test_x32_calls_kill() -> None:
    for program in compile_filters("x86_64"):
        assert evaluate_filter(program, X86_64, 0x40000000 | 39) == KILL
        assert evaluate_filter(program, X86_64, 0x40000000 | 520) == KILL


FORK, THREAD = 0x01200011, 0x003D0F00
UNCOUNTED_OPTIONS = [
    *((socket.SOL_SOCKET, option) for option in (37, 60, 61, 65)),
    *((socket.IPPROTO_TCP, option) for option in (14, 32, 38)),
    *((level, option) for level in (socket.IPPROTO_UDP, 136) for option in (1, 100)),
    *((socket.IPPROTO_IP, option) for option in (35, 38, 39, 41, 42, 43, 46, 48)),
    *((socket.IPPROTO_IPV6, option) for option in (20, 27, 32, 42, 43, 46, 48)),
]
TIOCSTI, TCGETS, TIOCSETD = 0x5412, 0x5401, 0x5423
S_IFIFO, S_IFCHR, S_IFBLK = 0o010644, 0o020644, 0o060644


@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        ("clone", (FORK,), 0),
        ("clone", (THREAD,), 0),
        ("clone", (0x10000000 | 17,), errno.EPERM),
        ("clone", (ABOVE | 0x00020000,), errno.EPERM),
        ("ioctl", (0, TCGETS), 0),
        ("ioctl", (0, TIOCSTI), errno.EPERM),
        ("ioctl", (0, ABOVE | TIOCSTI), errno.EPERM),
        ("ioctl", (0, TIOCSETD), errno.EPERM),
        ("socket", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0), 0),
        ("socket", (socket.AF_UNIX, socket.SOCK_SEQPACKET, 0), 0),
        ("socket", (socket.AF_INET, socket.SOCK_STREAM, 0), 0),
        ("socket", (socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 6), 0),
        ("socket", (socket.AF_INET, socket.SOCK_DGRAM, 17), 0),
        ("socket", (socket.AF_NETLINK, socket.SOCK_RAW, 0), 0),
        ("socket", (socket.AF_NETLINK, socket.SOCK_RAW, 9), errno.ENOSYS),
        ("socket", (socket.AF_INET, socket.SOCK_RAW, 1), errno.ENOSYS),
        ("socket", (socket.AF_INET, socket.SOCK_SEQPACKET, 0), errno.ENOSYS),
        ("socket", (socket.AF_INET, socket.SOCK_STREAM, 262), errno.ENOSYS),
        ("socket", (socket.AF_PACKET, socket.SOCK_RAW, 0), errno.EAFNOSUPPORT),
        ("socket", (socket.AF_VSOCK, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),
        ("socket", (ABOVE | socket.AF_PACKET, socket.SOCK_RAW, 0), errno.EAFNOSUPPORT),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM, 0), 0),
        ("socketpair", (socket.AF_TIPC, socket.SOCK_STREAM, 0), errno.ENOSYS),
        ("setsockopt", (3, socket.SOL_SOCKET, socket.SO_REUSEADDR), 0),
        ("setsockopt", (3, socket.SOL_SOCKET, 26), errno.EPERM),
        ("setsockopt", (3, ABOVE | socket.SOL_SOCKET, ABOVE | 50), errno.EPERM),
        ("setsockopt", (3, 6, 31), errno.EPERM),
        ("setsockopt", (3, 6, 1), 0),
        ("setsockopt", (3, socket.SOL_SOCKET, socket.SO_SNDBUF), 0),
        *(("setsockopt", (3, *option), errno.ENOPROTOOPT) for option in UNCOUNTED_OPTIONS),
        ("setsockopt", (3, ABOVE | socket.IPPROTO_TCP, ABOVE | 14), errno.ENOPROTOOPT),
        ("prctl", (15,), 0),
        ("prctl", (4, 1), 0),
        ("prctl", (4, 0), errno.ENOSYS),
        ("prctl", (35, 1), errno.ENOSYS),
        ("prctl", (22, 2), errno.ENOSYS),
        ("prctl", (0x53564D41, 0), errno.ENOSYS),
        ("personality", (0xFFFFFFFF,), 0),
        ("personality", (0,), 0),
        ("personality", (0x0040000,), errno.ENOSYS),
        ("prlimit64", (0, 7), 0),
        ("prlimit64", (1, 7), errno.ENOSYS),
        ("prlimit64", (0, 4, 0), 0),
        ("prlimit64", (0, 4, 0x7FFF00000000), errno.ENOSYS),
        *((call, (0,), 0) for call in SCHEDULING),
        *((call, (1,), errno.EPERM) for call in SCHEDULING),
        *((call, (0xFFFFFFFF,), errno.EPERM) for call in SCHEDULING),
        ("sched_setscheduler", (0, 5), 0),
        ("sched_setscheduler", (7, 0), 0),
        ("sched_setscheduler", (1, 5), errno.EPERM),
        ("sched_setscheduler", (0xFFFFFFFF, 0x40000000), errno.EPERM),
        ("setpriority", (0, 0, 19), 0),
        ("setpriority", (0, 1, 19), errno.EPERM),
        ("setpriority", (1, 0, 19), errno.EPERM),
        ("setpriority", (2, 0, 19), errno.EPERM),
        ("ioprio_set", (1, 0, 0x6000), 0),
        ("ioprio_set", (1, 1, 0x6000), errno.EPERM),
        ("ioprio_set", (3, 0, 0x6000), errno.EPERM),
        ("setrlimit", (4,), errno.EPERM),
        ("setrlimit", (7,), 0),
        ("mmap", (0, 4096, 3, 0x22), 0),
        ("mmap", (0, 1 << 21, 3, 0x40022), errno.ENOMEM),
        ("memfd_create", (0, 1), 0),
        ("memfd_create", (0, 4), errno.ENOMEM),
        ("fcntl", (3, 3), 0),
        ("fcntl", (3, 1031, 1 << 20), 0),
        ("fcntl", (3, 1024, 0), errno.EPERM),
        ("fcntl", (3, ABOVE | 1024, 0), errno.EPERM),
        ("fcntl", (3, 1026, 4), errno.EPERM),
        ("fcntl", (3, 5, 0x7FFF00000000), 0),
        ("fcntl", (3, 36, 0x7FFF00000000), 0),
        ("fcntl", (3, 37, 0x7FFF00000000), errno.ENOLCK),
        ("fcntl", (3, ABOVE | 38, 0x7FFF00000000), errno.ENOLCK),
        ("flock", (3, 2), 0),
        ("openat", (3, 0, os.O_RDWR | os.O_CREAT), 0),
        ("openat", (3, 0, os.O_RDWR | os.O_DIRECT), errno.EINVAL),
        ("fcntl", (3, 4, os.O_NONBLOCK), 0),
        ("fcntl", (3, 4, os.O_NONBLOCK | os.O_DIRECT), errno.EINVAL),
        ("pipe2", (0, os.O_DIRECT), 0),
        ("preadv2", (3, 0, 1, 0, 0, 0), 0),
        ("preadv2", (3, 0, 1, 0, 0, ABOVE | 0x80), errno.EOPNOTSUPP),
        ("madvise", (0, 4096, 4), 0),
        ("madvise", (0, 4096, 12), errno.EINVAL),
        ("mknodat", (0, 0, S_IFIFO), 0),
        ("mknodat", (0, 0, S_IFCHR), errno.EPERM),
        ("mknodat", (0, 0, ABOVE | S_IFBLK), errno.EPERM),
    ],
)
@pytest.mark.parametrize("on", ARCHITECTURES)
def test_arguments_decide(on: str, call: str, arguments: tuple[int, ...], error: int) -> None:
    assert answer(call, *arguments, on=on) == error


@pytest.mark.parametrize("on", ARCHITECTURES)
@pytest.mark.parametrize("command", [6, 7, ABOVE | 6, ABOVE | 7])
def test_a_lock_of_a_range_of_bytes_succeeds_and_never_reaches_the_kernel(on: str, command: int) -> None:
    audit, arch = ARCHITECTURES[on]
    number = pyseccomp.resolve_syscall(arch, "fcntl")
    verdicts = [evaluate_filter(program, audit, number, 3, command, 0x7FFF00000000) for program in compile_filters(on)]
    assert verdicts == [ERRNO | 0, ALLOW]


@pytest.mark.parametrize("on", ARCHITECTURES)
@pytest.mark.parametrize(
    ("call", "arguments", "first"),
    [
        ("fsync", (3,), ERRNO | 0),
        ("fdatasync", (3,), ERRNO | 0),
        ("fadvise64", (3, 0, 0, ABOVE | 4), ERRNO | 0),
        ("fadvise64", (3, 0, 0, 3), ALLOW),
        ("sync_file_range", (3, 0, 0, 7), ERRNO | 0),
        ("msync", (0, 4096, ABOVE | 4), ERRNO | 0),
        ("msync", (0, 4096, 1), ALLOW),
    ],
)
def test_no_session_flushes_the_disk_or_empties_the_page_cache(
    on: str, call: str, arguments: tuple[int, ...], first: int
) -> None:
    audit, arch = ARCHITECTURES[on]
    number = pyseccomp.resolve_syscall(arch, call)
    verdicts = [evaluate_filter(program, audit, number, *arguments) for program in compile_filters(on)]
    assert verdicts == [first, ALLOW]


@pytest.mark.parametrize("on", ARCHITECTURES)
@pytest.mark.parametrize("option", [(1, 8), (ABOVE | 1, ABOVE | 8)])
def test_a_receive_queue_keeps_its_size_and_asking_for_another_succeeds(on: str, option: tuple[int, int]) -> None:
    audit, arch = ARCHITECTURES[on]
    number = pyseccomp.resolve_syscall(arch, "setsockopt")
    verdicts = [evaluate_filter(program, audit, number, 3, *option) for program in compile_filters(on)]
    assert verdicts == [ERRNO | 0, ALLOW]


@pytest.mark.parametrize(("flags", "error"), [(os.O_RDONLY, 0), (ABOVE | os.O_RDWR | os.O_DIRECT, errno.EINVAL)])
def test_the_old_call_for_opening_a_file_does_not_bypass_the_page_cache_either(flags: int, error: int) -> None:
    assert answer("open", 0, flags) == error


def test_what_is_never_allowed_is_about_calls_that_are() -> None:
    assert {never.call for never in DENY_RULES} <= {*calls_in(ALLOWED), *ALLOWED_ARGUMENTS}


@pytest.mark.parametrize("on", ARCHITECTURES)
@pytest.mark.parametrize(
    ("call", "arguments", "allowed"),
    [
        ("setresuid", (61_001, 61_001, 61_001), True),
        ("setresgid", (61_064, 61_064, 61_064), True),
        ("setresuid", (0, 0, 0), False),
        ("setresuid", (61_001, 0, 61_001), False),
        ("setresuid", (61_001, 61_001, 61_065), False),
        ("setresuid", (0xFFFFFFFF, 61_001, 0xFFFFFFFF), False),
        ("setresuid", (ABOVE, ABOVE, ABOVE), False),
        ("setresgid", (61_000, 61_000, 61_000), False),
        ("setuid", (61_001,), False),
        ("setgroups", (0, 0), False),
        ("getuid", (), True),
        ("execve", (), True),
    ],
)
def test_a_zygote_may_become_its_sessions_users_only(
    on: str, call: str, arguments: tuple[int, ...], allowed: bool
) -> None:
    audit, arch = ARCHITECTURES[on]
    program = compile_deny_rules(deny_other_users(range(61_001, 61_065)), on)
    answered = evaluate_filter(program, audit, pyseccomp.resolve_syscall(arch, call), *arguments)
    assert answered == (ALLOW if allowed else ERRNO | errno.EPERM)


@pytest.mark.parametrize("call", sorted({rule.call for rule in DENY_RULES}))
def test_a_refusal_that_libseccomp_cannot_compile_is_an_error(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    add_rule = pyseccomp.SyscallFilter.add_rule

    def add(self: pyseccomp.SyscallFilter, action: int, name: str, *arguments: pyseccomp.Arg) -> None:
        if name == call and action != pyseccomp.ALLOW:
            raise OSError(errno.EINVAL, "invalid argument")
        add_rule(self, action, name, *arguments)

    monkeypatch.setattr(pyseccomp.SyscallFilter, "add_rule", add)
    compile_filters.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=call):
            compile_filters()
    finally:
        compile_filters.cache_clear()


def test_a_refusal_of_a_call_that_libseccomp_does_not_know_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no_such_call"):
        compile_deny_rules((DenyRule(errno.EPERM, "no_such_call", ()),))


@pytest.mark.parametrize("makes_sandboxes", [True, False])
@pytest.mark.parametrize("call", ["bpf", "ptrace", "io_uring_setup", "init_module"])
def test_a_service_filter_without_one_of_its_calls_is_an_error(
    monkeypatch: pytest.MonkeyPatch, call: str, makes_sandboxes: bool
) -> None:
    add_rule = pyseccomp.SyscallFilter.add_rule

    def add(self: pyseccomp.SyscallFilter, action: int, name: str | int) -> None:
        if name == call:
            raise OSError(errno.EINVAL, "invalid argument")
        add_rule(self, action, name)

    monkeypatch.setattr(pyseccomp.SyscallFilter, "add_rule", add)
    with pytest.raises(RuntimeError, match=f"cannot refuse {call}: .* install a newer libseccomp2"):
        compile_service_filter(makes_sandboxes=makes_sandboxes)


@pytest.mark.parametrize("makes_sandboxes", [True, False])
def test_a_service_filter_refuses_what_no_service_needs(makes_sandboxes: bool) -> None:
    program = compile_service_filter(makes_sandboxes=makes_sandboxes)
    native = AARCH64 if os.uname().machine == "aarch64" else X86_64
    allowed = {
        name
        for name in calls_in(DENIED)
        if (number := pyseccomp.resolve_syscall(pyseccomp.system_arch(), name)) >= 0
        and evaluate_filter(program, native, number) != ERRNO | errno.EPERM
    }
    assert ("mount" in allowed, "mbind" in allowed, "capset" in allowed) == (makes_sandboxes,) * 3
    assert not allowed & {"bpf", "ptrace", "io_uring_setup", "init_module", "vmsplice", "keyctl"}
    assert makes_sandboxes or not allowed


def test_a_libseccomp_that_does_not_know_a_young_call_refuses_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    young = {"quotactl_fd": 443, "process_mrelease": 448, "set_mempolicy_home_node": 450}
    resolve, add_rule = pyseccomp.resolve_syscall, pyseccomp.SyscallFilter.add_rule

    def add(self: pyseccomp.SyscallFilter, action: int, name: str | int) -> None:
        if name in young:
            raise OSError(errno.EINVAL, "invalid argument")
        add_rule(self, action, name)

    monkeypatch.setattr(pyseccomp, "resolve_syscall", lambda arch, name: -1 if name in young else resolve(arch, name))
    monkeypatch.setattr(pyseccomp.SyscallFilter, "add_rule", add)
    for on, (audit, _) in ARCHITECTURES.items():
        program = compile_deny_rules(tuple(DenyRule(errno.EPERM, name, ()) for name in young), on)
        assert {evaluate_filter(program, audit, number) for number in young.values()} == {ERRNO | errno.EPERM}


INSTALL_SERVICE = """
import sys
from runners.sandbox import linux
from runners.sandbox.seccomp import compile_deny_rules, compile_service_filter
linux.no_new_privileges()
programs = {"none": compile_deny_rules(()), "runner": compile_service_filter(makes_sandboxes=True),
            "web": compile_service_filter(makes_sandboxes=False)}
try:
    linux.install_service_filter(programs[sys.argv[1]])
    print("in force")
except OSError as e:
    print(e)
"""


@pytest.mark.parametrize(("program", "in_force"), [("none", False), ("runner", True), ("web", True)])
def test_a_service_filter_is_in_force_only_if_it_refuses_a_call(program: str, in_force: bool) -> None:
    done = subprocess.run([sys.executable, "-c", INSTALL_SERVICE, program], capture_output=True, text=True, check=True)

    assert ("not in force" in done.stdout) != in_force
    assert (done.stdout == "in force\n") == in_force


INSTALL = """
import sys
from types import SimpleNamespace
from runners.sandbox import linux
from runners.sandbox.seccomp import compile_deny_rules, compile_filters
from runners.sandbox.setup import install_filters
linux.no_new_privileges()
programs = {"none": (compile_deny_rules(()),) * 2, "both": compile_filters()}
programs |= {"first": programs["both"][:1], "second": programs["both"][1:]}
try:
    install_filters(SimpleNamespace(seccomp=[program.hex() for program in programs[sys.argv[1]]]))
    print("in force")
except OSError as e:
    print(e)
"""


@pytest.mark.parametrize(
    ("filters", "in_force"), [("none", False), ("first", False), ("second", False), ("both", True)]
)
def test_filters_are_in_force_only_if_they_refuse_what_a_container_allows(filters: str, in_force: bool) -> None:
    done = subprocess.run([sys.executable, "-c", INSTALL, filters], capture_output=True, text=True, check=True)

    assert ("not in force" in done.stdout) != in_force
    assert (done.stdout == "in force\n") == in_force
