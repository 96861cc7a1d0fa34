"""``lockstep run``: a script in the same sandbox as the lessons, its output on this terminal."""

from __future__ import annotations

import asyncio
import codecs
import secrets
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, cast

import typer
from pydantic import ValidationError

from app.cli.printer import JsonPrinter, Printer, TextPrinter
from app.cli.runner_at_hand import NoRunner, runner_at_hand
from app.cli.speech import USAGE, give_up, read_settings
from app.settings import Settings
from runners.client import NotKnown, Refused, RunnerClient, RunnerError, RunnerUnavailable
from runners.protocol import (
    MOST_CODE_BYTES,
    POSSIBLE,
    Event,
    Finished,
    Keras,
    Outcome,
    RunRequest,
    SessionSpec,
    Started,
    UnknownTopology,
)

_INTERRUPTED = 130
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How long to wait for a runner that stopped answering, each time it does."""


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Python script; - reads standard input.")],
    topology: Annotated[str, typer.Option(help=f"The machine it sees: {POSSIBLE}.")] = "gpu:4",
    keras: Annotated[int, typer.Option(min=2, max=3, help="Which Keras tf.keras is.")] = 3,
    timeout: Annotated[float | None, typer.Option(help="Seconds it may take.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One event a line; the last has the outcome.")] = False,
) -> None:
    """Run a script in the sandbox, on the machine it names; what is simulated is said on standard error.

    Exit status: 0 its outcome is ok, 1 it is another or there is no runner, 2 asked wrongly, 130 interrupted.
    """
    settings = read_settings()
    try:
        name = secrets.token_hex(16)
        # Each script is a learner of its own: several at once must not end or refuse one another.
        spec = SessionSpec(owner=name, topology=topology, keras=cast(Keras, keras))
        request = RunRequest(id=name, session=name, spec=spec, code=_read(file), timeout_s=timeout)
    except UnknownTopology as e:
        give_up(f"{e}.", USAGE)
    except ValidationError as e:
        give_up(_reason(e), USAGE)
    printer = JsonPrinter(sys.stdout) if as_json else TextPrinter(sys.stdout, sys.stderr)
    try:
        status = asyncio.run(_Script(request, printer).run(settings))
    except NoRunner as e:
        give_up(str(e))
    except Refused as e:
        give_up(f"The runner declined: {e}")
    except RunnerError as e:
        give_up(f"The runner failed: {e}")
    raise typer.Exit(status)


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


def _read(file: str) -> str:
    """The code in the file; not a byte more is read than shows that it is too long."""
    try:
        source = _first_bytes(file, MOST_CODE_BYTES + len(codecs.BOM_UTF8) + 1).removeprefix(codecs.BOM_UTF8)
    except OSError as e:
        give_up(f"{file} cannot be read: {e.strerror or e}.", USAGE)
    if len(source) > MOST_CODE_BYTES:
        give_up(f"{file} is too long: at most {MOST_CODE_BYTES:,} bytes can be run at once.", USAGE)
    try:
        return source.decode()
    except UnicodeDecodeError:
        give_up(f"{file} is not UTF-8 text.", USAGE)


def _first_bytes(file: str, most: int) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(most)
    path = Path(file)
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # opening a folder says what it is, opening a pipe may wait
        give_up(f"{file} is not a file; - reads standard input.", USAGE)
    with path.open("rb") as script:
        return script.read(most)


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])).replace("timeout_s", "--timeout").replace("topology", "--topology")
    return f"{where}: {first['msg'].removeprefix('Value error, ')}."
