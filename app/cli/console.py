"""Messages of commands: sentences on standard error, and an exit status instead of a traceback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from app.settings import InvalidSettings, Settings

ENDED_BY_SIGTERM = 128 + signal.SIGTERM
"""The exit status of a command whose work SIGTERM has ended, as shells report it."""
USAGE_ERROR = 2
"""The exit status for wrong usage of a command."""


def print_message(sentence: str) -> None:
    """Print a message to standard error."""
    typer.echo(sentence, err=True)


def fail(sentence: str, status: int = 1) -> NoReturn:
    """Print a message and exit."""
    print_message(sentence)
    raise typer.Exit(status)


@contextmanager
def ending_at_sigterm(status: int) -> Iterator[None]:
    """End with SystemExit at SIGTERM: files are cleaned up, and the first process of a container does not ignore it."""
    before = signal.signal(signal.SIGTERM, lambda _signum, _frame: sys.exit(status))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def read_settings() -> Settings:
    """Read the settings, or exit with a sentence for each invalid one. From now on, log only warnings."""
    try:
        settings = Settings.read()
    except InvalidSettings as e:
        fail(str(e), USAGE_ERROR)

    from app.observability import configure_logging  # imported late, so that errors appear without delay

    configure_logging(settings.model_copy(update={"log_level": "warning"}))
    return settings
