"""Runs the command line in a separate process."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

LOCKSTEP = (sys.executable, "-c", "from app.cli.main import app; app()")

_PRELOADED = ("app.cli.serve", "app.cli.script_runner", "app.cli.doctor_checks", "app.main", "app.migrate", __name__)
"""What commands import: most of the second that one takes."""
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(list(_PRELOADED))


@dataclass(frozen=True)
class CompletedCommand:
    """The result of a command."""

    status: int
    out: str
    err: str


async def start(
    *arguments: str,
    stdin: int | IO[bytes] = PIPE,
    stdout: int = PIPE,
    before: tuple[str, ...] = (),
    program: tuple[str, ...] = LOCKSTEP,
    **settings: Any,
) -> Process:
    """Start ``lockstep``, its output in a pipe or on a descriptor; settings are variables without their prefix.

    ``before`` is what the command line begins with: another program that starts it. ``program`` is what runs in the
    place of ``lockstep``.
    """
    return await asyncio.create_subprocess_exec(
        *before, *program, *arguments, stdin=stdin, stdout=stdout, stderr=PIPE, env=_environment(settings)
    )


async def finish(process: Process, typed: bytes | None = b"", within_s: float = 40) -> CompletedCommand:
    """Wait for the end of the process."""
    try:
        out, err = await asyncio.wait_for(process.communicate(typed), within_s)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return CompletedCommand(process.returncode, (out or b"").decode(), err.decode())


async def lockstep(*arguments: str, typed: bytes = b"", within_s: float = 40, **settings: Any) -> CompletedCommand:
    """Run ``lockstep`` to its end in a fork of a process that has imported it; with ``start``, in a new Python."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        streams[0].write_bytes(typed)
        process = fork(_become_lockstep, arguments, streams, _environment(settings), Path.cwd())
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(process.sentinel, ended.set)
        try:
            await asyncio.wait_for(ended.wait(), within_s)
        finally:
            loop.remove_reader(process.sentinel)
            if not ended.is_set():
                process.kill()
            process.join()
        status = process.exitcode
        assert status is not None
        out, err = (stream.read_text() for stream in streams[1:])
        process.close()
    return CompletedCommand(status, out, err)


def fork(act: Callable[..., None], *arguments: object) -> BaseProcess:
    """Start a process that has imported Lockstep, and does this."""
    process = _forks.Process(target=act, args=arguments)
    process.start()
    return process


def _environment(settings: dict[str, Any]) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")}
    return environment | {f"LOCKSTEP_{name.upper()}": str(value) for name, value in settings.items()}


def _become_lockstep(
    arguments: tuple[str, ...], streams: list[Path], environment: dict[str, str], folder: Path
) -> None:
    """Run ``lockstep`` in this process."""
    from app.cli.main import app

    modes = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT] * 2)
    for number, (stream, mode) in enumerate(zip(streams, modes, strict=True)):
        os.dup2(os.open(stream, mode), number)
    sys.stdin = os.fdopen(0)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    app()
