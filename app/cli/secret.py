"""``lockstep secret``: manages the secrets with which a site signs links and cookies."""

from __future__ import annotations

from typing import Annotated

import typer

from app.accounts.signing import SIGN_IN_SECRET, UNSUBSCRIBE_SECRET, delete_previous_secret, rotate_secret
from app.cli.console import fail, print_message, read_settings
from app.cli.web_user import leave_root

app = typer.Typer(help="Manage the secrets that sign links and cookies.", no_args_is_help=True)


@app.callback()
def _begin() -> None:
    """Manage the secrets that sign links and cookies."""
    leave_root()


@app.command("rotate")
def rotate_(
    now: Annotated[
        bool, typer.Option("--now", help="Reject everything signed before, because the old secrets have leaked.")
    ] = False,
) -> None:
    """Create new secrets. Links and cookies signed with the old ones stay valid until the next rotation."""
    folder = read_settings().data_dir / "secrets"
    try:
        for name in (SIGN_IN_SECRET, UNSUBSCRIBE_SECRET):
            rotate_secret(folder / name)
            if now:
                delete_previous_secret(folder / name)
    except OSError as e:
        fail(f"Cannot replace the secrets in {folder}: {e.strerror}.")
    print_message(f"Created new secrets in {folder}. Restart the server to use them.")
