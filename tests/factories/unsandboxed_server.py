"""``lockstep`` as an unprivileged user starts it who does not find bubblewrap: a safeguard is missing."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.factories.cli_process import finish, start
from tests.factories.unprivileged_user import unprivileged_command

LEAST: dict[str, Any] = {"warm_kernels": 0, "prepare_data_sets": 0}
"""Of what a runner does when it starts."""


def without_bubblewrap(uid: int, place: Path) -> tuple[str, ...]:
    """An unprivileged user who finds programs only by their full path."""
    return (*unprivileged_command(uid), "env", f"PATH={place}", f"TMPDIR={place}")


@asynccontextmanager
async def served_unsandboxed(
    uid: int, place: Path, lessons: Path, **settings: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Process, str]]:
    """A server for untrusted users, started by an unprivileged user without bubblewrap; its log; its runner is up."""
    options: dict[str, Any] = {"data_dir": place / "data", "lessons_dir": lessons} | LEAST | settings
    serve = ("serve", "--host", "0.0.0.0", "--port", "0")
    process = await start(*serve, before=without_bubblewrap(uid, place), **options)
    try:
        assert process.stderr is not None
        url, said = None, ""
        async with asyncio.timeout(60):
            while not url:
                line = (await process.stderr.readline()).decode()
                assert line, said
                said += line
                url = re.search(r"http://\S+?(?=/ )", line)
        async with httpx.AsyncClient(base_url=url[0], headers={"origin": url[0]}, timeout=30) as client:
            async with asyncio.timeout(90):
                while not await _ready(client):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            yield client, process, said
    finally:
        if process.returncode is None:
            process.terminate()
            await finish(process)


async def _ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False
