"""How commands speak: sentences on standard error, and an exit instead of a traceback."""

from __future__ import annotations

from typing import NoReturn

import typer

from app.settings import InvalidSettings, Settings

USAGE_ERROR = 2
"""The exit status for a command that was asked wrongly."""


def print_message(sentence: str) -> None:
    """Tell the person at the terminal."""
    typer.echo(sentence, err=True)


def fail(sentence: str, status: int = 1) -> NoReturn:
    """Say why, and end."""
    print_message(sentence)
    raise typer.Exit(status)


def read_settings() -> Settings:
    """The settings, or an exit with a sentence for each bad one. From here on only warnings are logged."""
    try:
        settings = Settings.read()
    except InvalidSettings as e:
        fail(str(e), USAGE_ERROR)

    from app.observability import configure_logging  # after the refusal, which need not wait for it

    configure_logging(settings.model_copy(update={"log_level": "warning"}))
    return settings
