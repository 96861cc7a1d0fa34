"""``lockstep run``: runs a script in the same sandbox as lessons, with its output on this terminal."""

from __future__ import annotations

import codecs
import secrets
import stat
import sys
from pathlib import Path
from typing import Annotated, cast

import typer
from pydantic import ValidationError

from app.cli.console import USAGE_ERROR, fail, read_settings
from runners.wire.protocol import MAX_CODE_BYTES, POSSIBLE_TOPOLOGIES, KerasVersion, RunRequest, SessionSpec


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Python script, or - for standard input.")],
    topology: Annotated[str, typer.Option(help=f"The machine to run on: {POSSIBLE_TOPOLOGIES}.")] = "gpu:4",
    keras: Annotated[int, typer.Option(min=2, max=3, help="The version of Keras to use.")] = 3,
    timeout: Annotated[float | None, typer.Option(help="Stop the script after this many seconds.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON event per line; the last has the outcome.")
    ] = False,
) -> None:
    """Run a script in the sandbox on a given machine. Standard error says what is simulated.

    Exit status: 0 ok, 1 any other outcome or no runner, 2 usage error, 130 interrupted.
    """
    spec = _spec(topology, keras)
    settings = read_settings()
    code = read_source(file)
    request = _request(spec, code, timeout)
    # IPython leaves out empty first lines: then its numbers are not those of the file.
    name = Path(file).name if file != "-" and code.split("\n", 1)[0].strip() else ""

    from app.cli import script_runner  # imported late, so that usage errors appear without delay

    raise typer.Exit(script_runner.run_script(request, settings, as_json=as_json, name=name))


def _spec(topology: str, keras: int) -> SessionSpec:
    """Check the machine; exits with a sentence if it is invalid."""
    try:
        # Each script counts as a separate learner, so that concurrent scripts do not evict or block each other.
        return SessionSpec(owner=secrets.token_hex(16), topology=topology, keras=cast(KerasVersion, keras))
    except ValidationError as e:
        fail(format_error(e), USAGE_ERROR)


def _request(spec: SessionSpec, code: str, timeout: float | None) -> RunRequest:
    """Create the request; exits with a sentence if it is invalid."""
    try:
        return RunRequest(id=spec.owner, session=spec.owner, spec=spec, code=code, timeout_s=timeout)
    except ValidationError as e:
        fail(format_error(e), USAGE_ERROR)


def read_source(file: str) -> str:
    """Read the code in the file, but only as much as shows that it is too long."""
    try:
        source = _first_bytes(file, MAX_CODE_BYTES + len(codecs.BOM_UTF8) + 1).removeprefix(codecs.BOM_UTF8)
    except OSError as e:
        fail(f"Cannot read {file}: {e.strerror or e}.", USAGE_ERROR)
    if len(source) > MAX_CODE_BYTES:
        fail(f"{file} is too long. The limit is {MAX_CODE_BYTES:,} bytes.", USAGE_ERROR)
    try:
        return source.decode()
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8 text.", USAGE_ERROR)


def _first_bytes(file: str, most: int) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(most)
    path = Path(file)
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # a folder gives a clear error; a pipe may block
        fail(f"{file} is not a regular file. Use - to read standard input.", USAGE_ERROR)
    with path.open("rb") as script:
        return script.read(most)


def format_error(error: ValidationError) -> str:
    """What is wrong with a request, in the words of the command line."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])).replace("timeout_s", "--timeout").replace("topology", "--topology")
    return f"{where}: {first['msg'].removeprefix('Value error, ')}."
