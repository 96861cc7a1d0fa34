"""A script of ``lockstep run``, from its submission to its end, interruptions and broken connections included."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from app.cli.printer import JsonPrinter, Printer, TextPrinter
from app.cli.runner_at_hand import NoRunner, other_settings, runner_at_hand
from app.cli.speech import give_up, say
from app.settings import Settings
from runners.client import NotKnown, Refused, RunnerClient, RunnerError, RunnerUnavailable
from runners.protocol import Event, Finished, Outcome, RunRequest, Started

_INTERRUPTED = 130
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How long to wait for a runner that stopped answering, each time it does."""


def play(request: RunRequest, settings: Settings, *, as_json: bool) -> int:
    """Run it and print what comes; return the exit status, or exit with a sentence."""
    printer = JsonPrinter(sys.stdout) if as_json else TextPrinter(sys.stdout, sys.stderr)
    try:
        return asyncio.run(_Script(request, printer).run(settings))
    except NoRunner as e:
        give_up(str(e))
    except Refused as e:
        give_up(f"The runner declined: {e}")
    except RunnerError as e:
        give_up(f"The runner failed: {e}")


class _Script:
    """One script from submission to its end."""

    def __init__(self, request: RunRequest, printer: Printer) -> None:
        self._request = request
        self._printer = printer
        self._interrupted = False

    async def run(self, settings: Settings) -> int:
        """Print what comes and return the exit status."""
        task = asyncio.current_task()
        async with runner_at_hand(settings, self._request.spec.keras) as client:
            if others := await other_settings(client, settings):
                say(f"lockstep: {others}")
            loop = asyncio.get_running_loop()
            stopping: set[asyncio.Task[None]] = set()

            def interrupt() -> None:
                if self._interrupted and task is not None:
                    task.cancel()  # the second time we do not wait for the runner
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
        pauses = iter(_PAUSES_S)
        while True:
            try:
                async for event in client.events(self._request.id, after=last.seq if last else 0):
                    if isinstance(event, Started):
                        with suppress(RunnerError):
                            self._printer.begin(await client.session(self._request.session))
                    self._printer.show(event)
                    last, pauses = event, iter(_PAUSES_S)
                    if isinstance(event, Finished):
                        return event.outcome
            except NotKnown:
                break
            except RunnerUnavailable:
                if (pause_s := next(pauses, None)) is None:
                    break
                await asyncio.sleep(pause_s)
        seq, at_ms = (last.seq + 1, last.at_ms) if last else (1, 0)
        self._printer.show(Finished(seq=seq, at_ms=at_ms, outcome=Outcome.lost))
        return Outcome.lost

    async def _stop(self, client: RunnerClient) -> None:
        with suppress(RunnerError):
            await client.stop(self._request.id)
