"""How commands speak: sentences on standard error, and an exit instead of a traceback."""

from __future__ import annotations

from typing import NoReturn

import typer

from app.settings import Settings, UnusableSettings

USAGE = 2
"""The exit status for a command that was asked wrongly."""


def say(sentence: str) -> None:
    """Tell the person at the terminal."""
    typer.echo(sentence, err=True)


def give_up(sentence: str, status: int = 1) -> NoReturn:
    """Say why, and end."""
    say(sentence)
    raise typer.Exit(status)


def read_settings() -> Settings:
    """The settings, or an exit with a sentence for each bad one. From here on only warnings are logged."""
    try:
        settings = Settings.read()
    except UnusableSettings as e:
        give_up(str(e), USAGE)

    from app.observability import set_up_logging  # after the refusal, which need not wait for it

    set_up_logging(settings.model_copy(update={"log_level": "warning"}))
    return settings
