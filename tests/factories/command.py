"""The command line as a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from typing import IO, Any

LOCKSTEP = (sys.executable, "-c", "from app.cli.main import app; app()")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


async def start(
    *arguments: str,
    stdin: int | IO[bytes] = PIPE,
    stdout: int = PIPE,
    before: tuple[str, ...] = (),
    **settings: Any,
) -> Process:
    """Start ``lockstep``, its output in a pipe or on a descriptor; settings are variables without their prefix.

    ``before`` is what the command line begins with: another program that starts it.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")}
    environment |= {f"LOCKSTEP_{name.upper()}": str(value) for name, value in settings.items()}
    return await asyncio.create_subprocess_exec(
        *before, *LOCKSTEP, *arguments, stdin=stdin, stdout=stdout, stderr=PIPE, env=environment
    )


async def finish(process: Process, typed: bytes | None = b"", within_s: float = 40) -> Ended:
    """Wait for its end."""
    try:
        out, err = await asyncio.wait_for(process.communicate(typed), within_s)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return Ended(process.returncode, (out or b"").decode(), err.decode())


async def lockstep(*arguments: str, typed: bytes = b"", **settings: Any) -> Ended:
    """Run ``lockstep`` to its end."""
    return await finish(await start(*arguments, **settings), typed)
