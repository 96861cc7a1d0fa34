"""``lockstep datasets``: hands the command to the runner's own tool.

The web application holds no data sets and its image has none of the packages that read them, so the work is done by
``python -m runners.datasets`` in a process of its own, with this process's terminal.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Annotated

import typer

from app.cli.console import fail, read_settings

app = typer.Typer(no_args_is_help=True, help="The data sets that sandboxes can load without a network.")

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]…", help="Data sets, as in `lockstep datasets list`.")
]


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every data set and whether sessions get the real one or its stand-in."""
    _run_tool("list", *(["--json"] if as_json else []))


@app.command()
def fetch(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Every data set of the catalog.")] = False,
    source: Annotated[
        str | None, typer.Option(help="A mirror's address or a folder, in place of the catalog's addresses.")
    ] = None,
) -> None:
    """Download the real files, verify them and keep them for all sandboxes."""
    options = (["--all"] if everything else []) + ([f"--source={source}"] if source is not None else [])
    _run_tool("fetch", *options, "--", *(names or []))


@app.command()
def verify(names: Names = None) -> None:
    """Read every byte of the cache and compare it with the catalog's digests."""
    _run_tool("verify", "--", *(names or []))


def _run_tool(*arguments: str) -> None:
    """Run the tool; its exit status becomes ours."""
    if importlib.util.find_spec("numpy") is None:
        fail("The runner's packages are not installed here; run this where the runner is.")
    cache = read_settings().data_dir / "datasets"
    command = [sys.executable, "-m", "runners.datasets", f"--cache={cache}", *arguments]
    try:
        raise typer.Exit(subprocess.run(command, check=False).returncode)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
