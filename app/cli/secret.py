"""``lockstep secret``: what a site signs its links and cookies with."""

from __future__ import annotations

from typing import Annotated

import typer

from app.accounts.secret import SIGN_IN, UNSUBSCRIBE, forget, rotate
from app.cli.speech import give_up, read_settings, say

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
        for name in (SIGN_IN, UNSUBSCRIBE):
            rotate(folder / name)
            if now:
                forget(folder / name)
    except OSError as e:
        give_up(f"The secrets in {folder} cannot be replaced: {e.strerror}.")
    say(f"New secrets are in {folder}. They count from the next start of the server on.")
