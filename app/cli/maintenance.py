"""``lockstep maintenance``: turns maintenance mode on and off."""

from __future__ import annotations

import typer
from sqlalchemy.ext.asyncio import AsyncSession

from app.admin.audit import Actor
from app.admin.switching import turn_switch
from app.cli.console import print_message
from app.cli.transaction import run_in_transaction
from app.cli.web_user import leave_root
from app.site_switches import Switch, is_on

_HELP = "Maintenance mode: only admins sign in and change anything."
app = typer.Typer(no_args_is_help=True, help=_HELP)


@app.callback()
def _begin() -> None:
    """Maintenance mode: only admins sign in and change anything."""
    leave_root()


@app.command("on")
def on_() -> None:
    """Turn maintenance mode on. Every web process follows within a second."""
    _turn(on=True)


@app.command("off")
def off_() -> None:
    """Turn maintenance mode off."""
    _turn(on=False)


@app.command()
def status() -> None:
    """Print whether maintenance mode is on or off."""

    async def work(session: AsyncSession) -> str:
        return "on" if await is_on(session, Switch.maintenance) else "off"

    typer.echo(run_in_transaction(work))


def _turn(*, on: bool) -> None:
    async def work(session: AsyncSession) -> str:
        await turn_switch(session, Actor.of_command(), Switch.maintenance, on=on)
        return f"Maintenance mode is {'on' if on else 'off'}."

    print_message(run_in_transaction(work))
