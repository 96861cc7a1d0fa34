"""Preparing beside the supervisor: at its start, in a process of its own, while sessions may run already.

The supervisor stays small and free of NumPy; a session that loads a data set before this is done goes the slow way.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger()


def make_folder(cache_dir: Path) -> None:
    """Make the cache's folder, so that it can be mounted before anything is fetched; a read-only disk is not fatal."""
    with suppress(OSError):
        cache_dir.mkdir(parents=True, exist_ok=True)


async def prepare_beside(cache_dir: Path) -> None:
    """Run ``python -m runners.datasets prepare`` and log what went wrong. Half a copy, if cancelled, is never used."""
    process = await asyncio.create_subprocess_exec(
        "nice",
        sys.executable,
        "-m",
        "runners.datasets",
        f"--cache={cache_dir}",
        "prepare",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        for line in output.decode(errors="replace").splitlines():
            log.warning("data set", about=line)
