"""A PID namespace around one command and everything it starts: when the command ends, so does all the rest.

Without it, a program that starts a session of its own and forks twice outlives what started it. Three processes take
part: the one that calls ``enter_pid_namespace`` waits outside, its child is PID 1 of the namespace, and PID 1's child
becomes the command. The first two pass on signals and the exit status.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from typing import NoReturn

from runners.sandbox import linux
from runners.wire.users import END_AT_ONCE

_PASSED_ON = (signal.SIGINT, signal.SIGTERM)
_AWAITED = (*_PASSED_ON, END_AT_ONCE, signal.SIGCHLD)
_KILLED_BY = 128
"""An exit status above this is the number of a signal, as in a shell: PID 1 cannot end by a signal of its own."""


def enter_pid_namespace(drop_rights: Callable[[], None]) -> None:
    """Return in a process of a new PID namespace, which may become a command, with its own ``/proc``.

    ``drop_rights`` is called in the two processes that wait for it, which need none.

    Raises:
        OSError: this process may not make the namespace, or nothing in it. It is as it was.
    """
    outside, first = _fork_first()
    if first:
        linux.die_with_parent(signal.SIGTERM)
        drop_rights()
        linux.die_with_parent(signal.SIGTERM)  # a change of user clears it
        _end_as(_wait_for(first))
    linux.die_with_parent(signal.SIGKILL)
    if select.select([outside], [], [], 0)[0]:  # it has ended before it could take us along
        os._exit(1)
    os.close(outside)
    with contextlib.suppress(OSError):  # then the one outside is seen, whose processes are not ours to access
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    if command := os.fork():
        drop_rights()
        linux.die_with_parent(signal.SIGKILL)
        status = _wait_for(command)
        os._exit(status if status >= 0 else _KILLED_BY - status)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)


def _fork_first() -> tuple[int, int]:
    """Fork PID 1 of a new namespace, with the signals that both wait for blocked.

    Returns:
        A descriptor of the process outside, and what ``fork`` returned.
    """
    with contextlib.ExitStack() as undo:
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        undo.callback(os.close, own)
        outside = os.pidfd_open(os.getpid())
        undo.callback(os.close, outside)
        undo.callback(signal.signal, signal.SIGCHLD, signal.signal(signal.SIGCHLD, signal.SIG_DFL))
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)  # before anybody can miss one
        undo.callback(signal.pthread_sigmask, signal.SIG_SETMASK, blocked)
        linux.unshare(linux.CLONE_NEWPID)
        undo.callback(linux.join_namespace, own, linux.CLONE_NEWPID)
        first = os.fork()
        undo.pop_all()
    os.close(own)
    return outside, first


def _wait_for(child: int) -> int:
    """Pass on signals and reap orphans until ``child`` has ended; returns its status, negative for a signal."""
    while True:
        signum = signal.sigwait(_AWAITED)
        if signum != signal.SIGCHLD:
            os.kill(child, signum if signum in _PASSED_ON else signal.SIGKILL)
            continue
        ended = -1
        while ended:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                return os.waitstatus_to_exitcode(status)


def _end_as(status: int) -> NoReturn:
    """End as the command did, by the same signal if it was one."""
    signum = -status if status < 0 else status - _KILLED_BY
    if signum in signal.valid_signals():
        if signum not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})
        os.kill(os.getpid(), signum)
    os._exit(status)
