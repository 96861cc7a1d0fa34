"""``lockstep datasets``: passes the command on to the runner's own tool.

The web application has no data sets, and its image has none of the packages that read them, so ``python -m
runners.datasets`` does the work in a separate process, on the same terminal.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Annotated

import typer

from app.cli.console import fail, read_settings

app = typer.Typer(no_args_is_help=True, help="Manage the data sets that sandboxes load without a network.")

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="Names from `lockstep datasets list`.")]


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List every data set, and whether sessions get the real one or a stand-in."""
    _run_tool("list", *(["--json"] if as_json else []))


@app.command()
def fetch(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Fetch every data set in the catalog.")] = False,
    source: Annotated[
        str | None, typer.Option(help="A mirror URL or a directory to use instead of the catalog's URLs.")
    ] = None,
) -> None:
    """Download the real files, verify them, and cache them for all sandboxes."""
    options = (["--all"] if everything else []) + ([f"--source={source}"] if source is not None else [])
    _run_tool("fetch", *options, "--", *(names or []))


@app.command()
def verify(names: Names = None) -> None:
    """Compare every cached file with its digest in the catalog."""
    _run_tool("verify", "--", *(names or []))


def _run_tool(*arguments: str) -> None:
    """Run the tool, and exit with its exit status."""
    if importlib.util.find_spec("numpy") is None:
        fail("The runner's packages are not installed here. Run this command where the runner is installed.")
    cache = read_settings().data_dir / "datasets"
    command = [sys.executable, "-m", "runners.datasets", f"--cache={cache}", *arguments]
    try:
        raise typer.Exit(subprocess.run(command, check=False).returncode)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
