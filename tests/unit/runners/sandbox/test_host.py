"""What the supervisor hears from a sandbox's PID 1."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from runners.sandbox import host
from runners.sandbox.cgroups import NoGroup
from runners.sandbox.host import Sandbox


async def test_a_late_word_of_the_kernel_before_is_not_the_end_of_the_next(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sandbox = Sandbox("s", tmp_path, os.getpid(), os.pidfd_open(os.getpid()), ours, NoGroup())
    sandbox.watch()
    try:
        first = sandbox.start_kernel("cpu", 3, b"key")
        number = json.loads(theirs.recv(1 << 16))["kernel"]
        theirs.send(json.dumps({"exited": 3, "kernel": number}).encode())
        second = sandbox.start_kernel("cpu", 3, b"key")
        await asyncio.sleep(0.05)
        assert first.done()
        assert not second.done()

        theirs.send(json.dumps({"exited": 4, "kernel": number + 1}).encode())
        assert await asyncio.wait_for(second, 5) == 4
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
    monkeypatch.setattr(host, "_DIE_S", 0.0)
    with theirs, subprocess.Popen(["sleep", "60"]) as process:  # noqa: ASYNC220
        sandbox = Sandbox("s", tmp_path / "folder", process.pid, os.pidfd_open(process.pid), ours, NoGroup())
        sandbox.watch()

        await sandbox.destroy()
        assert not sandbox.gone.is_set()

        await asyncio.wait_for(sandbox.gone.wait(), 10)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(sandbox.pidfd)
