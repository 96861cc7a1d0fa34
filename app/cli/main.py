"""The command line: one module for each noun, imported when it is named."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_COMMANDS = ("serve", "run", "doctor", "lesson", "exercise", "user", "secret", "db", "datasets", "kernelspec")


class LazyGroup(TyperGroup):
    """Knows the names of its commands and loads the one that is asked for: one that is refused is refused at once."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name) for name in _COMMANDS}  # in their places until one is asked for

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or None if there is no such."""
        return _load_command(cmd_name) if cmd_name in _COMMANDS else None


def _load_command(name: str) -> Any:
    """A module has a ``Typer`` of several commands as its ``app``, or a function of its own name."""
    module = import_module(f"app.cli.{name}")
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


@app.callback()
def _about() -> None:
    """Learn distributed TensorFlow by running it."""
