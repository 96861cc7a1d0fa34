"""The supervisor that is running already, or one for the duration of a command."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.cli.local_runner import LocalRunner
from app.cli.shell_settings import differing, sets_any, shell_settings
from app.settings import Settings
from runners.client import RunnerClient, RunnerUnavailable
from runners.protocol import Health, Keras

_PATIENCE_S = 120.0
_MOST_FAILURES = 2
_LOOK_EVERY_S = 0.05
_REFUSES = "A runner cannot be started here: it refuses its settings."


class NoRunner(Exception):
    """No supervisor answers, and none could be started. ``str()`` is a sentence."""


@asynccontextmanager
async def runner_at_hand(settings: Settings, keras: Keras = 3) -> AsyncIterator[RunnerClient]:
    """A client of a supervisor that answers; one that has to be started begins with this Keras.

    Raises:
        NoRunner: there is none.
    """
    async with RunnerClient(settings.socket) as client:
        if await _answers(client):
            yield client
            return
    if settings.runner_socket is not None:
        raise NoRunner(f"The runner at {settings.runner_socket} does not answer.")
    if sets_any(os.environ) and (refused := shell_settings().refused):
        raise NoRunner("\n".join((*refused, _REFUSES)))
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        socket = Path(folder) / "supervisor.sock"
        few = {"LOCKSTEP_WARM_KERNELS": "0", "LOCKSTEP_WARM_KERAS": str(keras)}
        with LocalRunner(socket, settings.data_dir, extra=few, tell=said.append) as local:
            async with RunnerClient(socket) as client:
                await _wait_for(client, local, said)
                yield client


async def other_settings(client: RunnerClient, settings: Settings) -> str:
    """A sentence if this is a runner that ran before and is set otherwise than this shell says; empty if not."""
    if client.socket != settings.socket or settings.runner_socket is not None or not sets_any(os.environ):
        return ""
    shell = shell_settings()
    others = shell.refused or differing((await client.health()).settings, shell.values)
    if not others:
        return ""
    return f"The runner already running at {client.socket} is used, which is set otherwise: {'; '.join(others)}."


async def settled(client: RunnerClient) -> Health:
    """The supervisor's health once it has started, or as it is when patience ends."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        health = await client.health()
        if health.status != "starting" or time.monotonic() > give_up_at:
            return health
        await asyncio.sleep(_LOOK_EVERY_S)


async def _answers(client: RunnerClient) -> bool:
    try:
        await client.health()
    except RunnerUnavailable:
        return False
    return True


async def _wait_for(client: RunnerClient, local: LocalRunner, said: list[str]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while not await _answers(client):
        if local.refused:  # it has said why on standard error
            raise NoRunner(_REFUSES)
        if local.failures >= _MOST_FAILURES:
            raise NoRunner(f"A runner cannot be started here. {said[-1]}")
        if time.monotonic() > give_up_at:
            raise NoRunner("The runner did not start in time.")
        await asyncio.sleep(_LOOK_EVERY_S)
