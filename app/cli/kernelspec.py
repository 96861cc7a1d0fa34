"""``lockstep kernelspec``: Lockstep's kernels in JupyterLab, nbclient and papermill.

Jupyter's packages are installed with the runner, so ``python -m runners.jupyter.kernelspec`` does the work in a
separate process, on the same terminal.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import USAGE_ERROR, fail, read_settings
from runners.wire.protocol import POSSIBLE_TOPOLOGIES

app = typer.Typer(no_args_is_help=True, help="Manage Lockstep's kernels for JupyterLab, nbclient, and papermill.")


@app.command()
def install(
    topology: Annotated[
        str | None, typer.Option(help=f"Install one kernel with this machine: {POSSIBLE_TOPOLOGIES}.")
    ] = None,
    keras: Annotated[
        int | None, typer.Option(min=2, max=3, help="Install one kernel with this version of Keras.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The kernel's name in notebooks.")] = None,
    display_name: Annotated[str | None, typer.Option(help="The kernel's display name.")] = None,
    user: Annotated[
        bool, typer.Option("--user", help="Install for the current user, in every Jupyter (the default).")
    ] = False,
    prefix: Annotated[Path | None, typer.Option(help="Install under this directory.")] = None,
    sys_prefix: Annotated[bool, typer.Option("--sys-prefix", help="Install in Lockstep's own environment.")] = False,
) -> None:
    """Install one kernel for each machine that the lessons start on, a CPU, and Keras 2; or the one you describe."""
    if sum((user, prefix is not None, sys_prefix)) > 1:
        fail("Use only one of --user, --prefix, and --sys-prefix.", USAGE_ERROR)
    options = {"topology": topology, "keras": keras, "name": name, "display-name": display_name, "prefix": prefix}
    settings = read_settings()
    _run_tool(
        "install",
        f"--data-dir={settings.data_dir}",
        f"--socket={settings.socket}",
        *(f"--{option}={value}" for option, value in options.items() if value is not None),
        *(["--sys-prefix"] if sys_prefix else []),
    )


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List Lockstep's kernels that Jupyter finds here."""
    _run_tool("list", *(["--json"] if as_json else []))


@app.command()
def remove(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all of Lockstep's kernels.")] = False,
) -> None:
    """Remove Lockstep's kernels."""
    _run_tool("remove", *(["--all"] if everything else []), "--", *(names or []))


def _run_tool(*arguments: str) -> None:
    """Run the tool, and exit with its exit status."""
    if importlib.util.find_spec("jupyter_client") is None:
        fail("The runner's packages are not installed here. Run this command where the runner is installed.")
    try:
        raise typer.Exit(subprocess.run([sys.executable, "-m", "runners.jupyter.kernelspec", *arguments]).returncode)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
