"""The command line: one module for each command, imported only when used."""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

_COMMANDS = (
    "serve",
    "run",
    "doctor",
    "lesson",
    "exercise",
    "course",
    "user",
    "maintenance",
    "secret",
    "backup",
    "restore",
    "db",
    "datasets",
    "kernelspec",
)


class LazyGroup(TyperGroup):
    """Lists the names of its commands, and loads only the requested one, so that errors appear without delay."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name) for name in _COMMANDS}  # placeholders until one is requested

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load the command; None if it does not exist."""
        return _load_command(cmd_name) if cmd_name in _COMMANDS else None


def import_quickly(name: str) -> ModuleType:
    """Import a module that imports many others.

    Imports produce hardly any garbage, and searching for it takes a fifth of their time. What they leave is never
    searched, which makes each later search shorter, too.
    """
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def _load_command(name: str) -> Any:
    """Load a module's command: a ``Typer`` named ``app``, or a function with the module's name."""
    module = import_quickly(f"app.cli.{name}")
    several: typer.Typer | None = getattr(module, "app", None)
    if several is None:
        several = typer.Typer(add_completion=False)
        several.command(name)(getattr(module, name))
        command: Any = typer.main.get_command(several)
    else:
        command = typer.main.get_group(several)
    command.name = name
    return command


app = typer.Typer(
    cls=LazyGroup,
    help="Learn distributed TensorFlow by running it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from app.version import described_version  # other commands do not need it

        typer.echo(f"lockstep {described_version()}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and the commit."),
    ] = False,
) -> None:
    """Learn distributed TensorFlow by running it."""


if __name__ == "__main__":
    app()
