"""``lockstep run``: a script in the same sandbox as the lessons, its output on this terminal."""

from __future__ import annotations

import codecs
import secrets
import stat
import sys
from pathlib import Path
from typing import Annotated, cast

import typer
from pydantic import ValidationError

from app.cli.speech import USAGE, give_up, read_settings
from runners.protocol import (
    MOST_CODE_BYTES,
    POSSIBLE,
    Keras,
    RunRequest,
    SessionSpec,
)


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
    spec = _spec(topology, keras)
    settings = read_settings()
    request = _request(spec, _read(file), timeout)

    from app.cli import script  # what was asked wrongly is said before all this is loaded

    raise typer.Exit(script.play(request, settings, as_json=as_json))


def _spec(topology: str, keras: int) -> SessionSpec:
    """The machine, or an exit with a sentence."""
    try:
        # Each script is a learner of its own: several at once must not end or refuse one another.
        return SessionSpec(owner=secrets.token_hex(16), topology=topology, keras=cast(Keras, keras))
    except ValidationError as e:
        give_up(_reason(e), USAGE)


def _request(spec: SessionSpec, code: str, timeout: float | None) -> RunRequest:
    """What to ask a runner for, or an exit with a sentence."""
    try:
        return RunRequest(id=spec.owner, session=spec.owner, spec=spec, code=code, timeout_s=timeout)
    except ValidationError as e:
        give_up(_reason(e), USAGE)


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
