"""Runs a script for ``lockstep run`` from submission to end, across interrupts and broken connections."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from app.cli.connect_runner import NoRunnerAvailable, connect_runner, describe_settings_mismatch, run_events
from app.cli.console import fail, print_message
from app.cli.printer import JsonPrinter, Printer, TextPrinter
from app.settings import Settings
from runners.wire.client import RequestRefused, RunnerClient, RunnerError, RunnerUnavailable
from runners.wire.protocol import Event, FinishedEvent, Outcome, RunRequest, StartedEvent

_INTERRUPTED = 130


def run_script(request: RunRequest, settings: Settings, *, as_json: bool, name: str = "") -> int:
    """Run a script and print its output; returns the exit status, or exits with a sentence.

    ``name`` is what tracebacks call it.
    """
    printer = JsonPrinter(sys.stdout) if as_json else TextPrinter(sys.stdout, sys.stderr, name)
    try:
        return asyncio.run(_ScriptRun(request, printer).run(settings))
    except NoRunnerAvailable as e:
        fail(str(e))
    except RequestRefused as e:
        fail(f"The runner rejected the script: {e}")
    except RunnerError as e:
        fail(f"The runner failed: {e}")


class _ScriptRun:
    """One script from submission to its end."""

    def __init__(self, request: RunRequest, printer: Printer) -> None:
        self._request = request
        self._printer = printer
        self._interrupted = False

    async def run(self, settings: Settings) -> int:
        """Print events and return the exit status."""
        task = asyncio.current_task()
        async with connect_runner(settings, self._request.spec.keras) as client:
            if others := await describe_settings_mismatch(client, settings):
                print_message(f"lockstep: {others}")
            loop = asyncio.get_running_loop()
            stopping: set[asyncio.Task[None]] = set()

            def interrupt() -> None:
                if self._interrupted and task is not None:
                    task.cancel()  # at the second interrupt, do not wait for the runner
                self._interrupted = True
                stopping.add(asyncio.create_task(self._stop(client)))

            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, interrupt)
            try:
                await client.submit(self._request)
                outcome = await self._follow(client)
            except asyncio.CancelledError:
                return _INTERRUPTED
            finally:
                with suppress(RunnerError):
                    await client.end(self._request.session)
        if self._interrupted:
            return _INTERRUPTED
        return 0 if outcome is Outcome.ok else 1

    async def _follow(self, client: RunnerClient) -> Outcome:
        last: Event | None = None
        with suppress(RunnerUnavailable):
            async for event in run_events(client, self._request.id):
                if isinstance(event, StartedEvent):
                    with suppress(RunnerError):
                        self._printer.begin(await client.session(self._request.session))
                self._printer.show(event)
                last = event
                if isinstance(event, FinishedEvent):
                    return event.outcome
        seq, at_ms = (last.seq + 1, last.at_ms) if last else (1, 0)
        self._printer.show(FinishedEvent(seq=seq, at_ms=at_ms, outcome=Outcome.lost))
        return Outcome.lost

    async def _stop(self, client: RunnerClient) -> None:
        with suppress(RunnerError):
            await client.stop(self._request.id)
