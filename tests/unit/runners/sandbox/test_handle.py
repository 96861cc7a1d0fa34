"""Messages of a sandbox's PID 1 to the supervisor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from runners.sandbox import handle
from runners.sandbox.cgroups import NullCgroup
from runners.sandbox.handle import Sandbox, SandboxGone


async def test_a_late_word_of_the_kernel_before_is_not_the_end_of_the_next(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sandbox = Sandbox("s", tmp_path, os.getpid(), os.pidfd_open(os.getpid()), ours, NullCgroup())
    sandbox.watch()
    try:
        first = sandbox.start_kernel("cpu", 3, b"key")
        number = json.loads(theirs.recv(1 << 16))["kernel"]
        theirs.send(json.dumps({"exited": 3, "kernel": number}).encode())
        second = sandbox.start_kernel("cpu", 3, b"key")
        assert await first == -signal.SIGKILL
        theirs.send(json.dumps({"exited": 4, "kernel": number + 1}).encode())
        assert await asyncio.wait_for(second, 10) == 4
    finally:
        loop = asyncio.get_running_loop()
        loop.remove_reader(ours.fileno())
        loop.remove_reader(sandbox.pidfd)
        os.close(sandbox.pidfd)
        ours.close()
        theirs.close()


async def test_a_sandbox_that_dies_after_everybody_gave_up_waiting_is_gone_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    monkeypatch.setattr(handle, "_DIE_S", 0.0)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)  # as where it hangs in the operating system
    with theirs, subprocess.Popen(["sleep", "60"]) as process:  # noqa: ASYNC220
        sandbox = Sandbox("s", tmp_path / "folder", process.pid, os.pidfd_open(process.pid), ours, NullCgroup())
        sandbox.watch()

        await sandbox.destroy()
        assert not sandbox.gone.is_set()
        assert "pidfd" in _opened(sandbox.pidfd)

        process.kill()
        await asyncio.wait_for(sandbox.gone.wait(), 10)
        assert "pidfd" not in _opened(sandbox.pidfd)


async def test_an_interrupt_is_over_when_pid_1_has_sent_it_or_has_ended(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, subprocess.Popen(["sleep", "600"]) as process:  # noqa: ASYNC220
        sandbox = Sandbox("s", tmp_path / "folder", process.pid, os.pidfd_open(process.pid), ours, NullCgroup())
        sandbox.watch()
        first, second = sandbox.interrupt(), sandbox.interrupt()
        command, _ = json.loads(theirs.recv(1 << 16)), theirs.recv(1 << 16)
        theirs.send(json.dumps({"answered": command["id"], "result": "done"}).encode())
        await asyncio.wait_for(first, 60)
        assert not second.done()

        process.kill()
        await asyncio.wait_for(second, 60)
        await sandbox.destroy()
        with pytest.raises(SandboxGone):
            sandbox.interrupt()


def _opened(descriptor: int) -> str:
    """What the number refers to now: another thread may have reused it."""
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except FileNotFoundError:
        return ""
