"""``lockstep secret``: what a site signs its links and cookies with."""

from __future__ import annotations

from typing import Annotated

import typer

from app.accounts.signing import SIGN_IN_SECRET, UNSUBSCRIBE_SECRET, delete_previous_secret, rotate_secret
from app.cli.console import fail, print_message, read_settings

app = typer.Typer(help="Look after what this site signs with.", no_args_is_help=True)


@app.callback()
def _about() -> None:
    """Look after what this site signs with."""


@app.command("rotate")
def rotate_(
    now: Annotated[
        bool, typer.Option("--now", help="Believe nothing that was signed before: the old secrets are known to others.")
    ] = False,
) -> None:
    """Make new secrets. What the old ones have signed stays good until they are made anew once more."""
    folder = read_settings().data_dir / "secrets"
    try:
        for name in (SIGN_IN_SECRET, UNSUBSCRIBE_SECRET):
            rotate_secret(folder / name)
            if now:
                delete_previous_secret(folder / name)
    except OSError as e:
        fail(f"The secrets in {folder} cannot be replaced: {e.strerror}.")
    print_message(f"New secrets are in {folder}. They count from the next start of the server on.")
