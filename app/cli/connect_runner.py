"""Connects to a running supervisor, or starts one for the duration of a command."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.cli.local_runner import LocalRunner
from app.cli.shell_settings import has_runner_settings, settings_differences, shell_settings
from app.settings import Settings
from runners.wire.client import ResourceNotFound, RunnerClient, RunnerUnavailable
from runners.wire.protocol import Event, Health, KerasVersion

_START_TIMEOUT_S = 120.0
_MAX_FAILURES = 2
_RETRY_DELAYS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How long to wait for a runner that stopped responding, each time."""
_POLL_INTERVAL_S = 0.05
_SETTINGS_REFUSED = "Cannot start a runner here because its settings are not valid."


class NoRunnerAvailable(Exception):
    """No supervisor responds, and none could be started. ``str()`` is a sentence."""


@asynccontextmanager
async def connect_runner(settings: Settings, keras: KerasVersion = 3) -> AsyncIterator[RunnerClient]:
    """Yield a client of a supervisor that responds; one that has to be started starts with this Keras version.

    Raises:
        NoRunnerAvailable: there is no supervisor.
    """
    async with RunnerClient(settings.socket) as client:
        if await _responds(client):
            yield client
            return
    if settings.runner_socket is not None:
        raise NoRunnerAvailable(f"The runner at {settings.runner_socket} is not responding.")
    if has_runner_settings(os.environ) and (refused := shell_settings().refused):
        raise NoRunnerAvailable("\n".join((*refused, _SETTINGS_REFUSED)))
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        socket = Path(folder) / "supervisor.sock"
        few = {"LOCKSTEP_WARM_KERNELS": "0", "LOCKSTEP_WARM_KERAS": str(keras)}
        with LocalRunner(socket, settings.data_dir, extra=few, tell=said.append) as local:
            async with RunnerClient(socket) as client:
                await _wait_until_it_responds(client, local, said)
                yield client


async def describe_settings_mismatch(client: RunnerClient, settings: Settings) -> str:
    """A sentence if the runner was already running and its settings differ from this shell's; otherwise empty."""
    if client.socket != settings.socket or settings.runner_socket is not None or not has_runner_settings(os.environ):
        return ""
    shell = shell_settings()
    others = shell.refused or settings_differences((await client.health()).settings, shell.values)
    if not others:
        return ""
    return (
        f"Using the runner that is already running at {client.socket}, which has other settings: {'; '.join(others)}."
    )


async def wait_until_started(client: RunnerClient) -> Health:
    """Wait until the supervisor has started, or until a timeout; returns its health."""
    give_up_at = time.monotonic() + _START_TIMEOUT_S
    while True:
        health = await client.health()
        if health.status != "starting" or time.monotonic() > give_up_at:
            return health
        await asyncio.sleep(_POLL_INTERVAL_S)


async def run_events(client: RunnerClient, run: str) -> AsyncIterator[Event]:
    """The events of a run to its end, across lost connections. They end early if the runner has forgotten the run.

    Raises:
        RunnerUnavailable: the runner has stopped responding.
    """
    seq, pauses = 0, iter(_RETRY_DELAYS_S)
    while True:
        try:
            async for event in client.events(run, after=seq):
                seq, pauses = event.seq, iter(_RETRY_DELAYS_S)
                yield event
            return
        except ResourceNotFound:
            return
        except RunnerUnavailable:
            if (pause_s := next(pauses, None)) is None:
                raise
            await asyncio.sleep(pause_s)


async def _responds(client: RunnerClient) -> bool:
    try:
        await client.health()
    except RunnerUnavailable:
        return False
    return True


async def _wait_until_it_responds(client: RunnerClient, local: LocalRunner, said: list[str]) -> None:
    give_up_at = time.monotonic() + _START_TIMEOUT_S
    while not await _responds(client):
        if local.refused:  # it has said why on standard error
            raise NoRunnerAvailable(_SETTINGS_REFUSED)
        if local.failures >= _MAX_FAILURES:
            raise NoRunnerAvailable(f"Cannot start a runner here. {said[-1]}")
        if time.monotonic() > give_up_at:
            raise NoRunnerAvailable("The runner did not start in time.")
        await asyncio.sleep(_POLL_INTERVAL_S)
