"""Prepares data sets in a process of its own, beside the supervisor, while sessions may already be running.

The small data sets are prepared at startup and the others a minute later, so that a short-lived runner does not leave
400 MB behind. The supervisor stays small and free of NumPy. A session that loads a data set before it is prepared takes
the slow path.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger()

Round = tuple[float, tuple[str, ...]]
"""Seconds to wait, then the data sets to prepare; an empty list means all."""

ROUNDS: tuple[Round, ...] = ((0, ("fashion_mnist", "mnist")), (60, ()))


def make_folder(cache_dir: Path) -> None:
    """Create the cache's folder, so that it can be mounted before any fetch; a read-only disk is not fatal."""
    with suppress(OSError):
        cache_dir.mkdir(parents=True, exist_ok=True)


async def prepare_in_background(cache_dir: Path, rounds: Sequence[Round] = ROUNDS) -> None:
    """Prepare in rounds and log failures. If this is cancelled, an incomplete copy is never used."""
    for pause_s, names in rounds:
        await asyncio.sleep(pause_s)
        await _prepare(cache_dir, names)


async def _prepare(cache_dir: Path, names: Sequence[str]) -> None:
    """Run ``python -m runners.datasets prepare``."""
    process = await asyncio.create_subprocess_exec(
        "nice",
        "-n19",
        sys.executable,
        "-m",
        "runners.datasets",
        f"--cache={cache_dir}",
        "prepare",
        *names,
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
