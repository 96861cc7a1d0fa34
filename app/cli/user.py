"""``lockstep user``: accounts, from the operator's side."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.invitations import LASTS, invite
from app.accounts.models import Account, Role
from app.accounts.passwords import Passwords, weakness
from app.accounts.people import find_by_email, find_opened, make_account, readable_email, readable_name
from app.accounts.sign_ins import end_all
from app.cli.db import no_database, upgrade_now
from app.cli.speech import USAGE, give_up, read_settings, say
from app.db import Database, now
from app.i18n import DEFAULT
from app.mail.letter import Mail
from app.mail.outbox import post
from app.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Accounts: make them, invite, give them a role, shut them.")
T = TypeVar("T")

Email = Annotated[str, typer.Argument(metavar="EMAIL")]
_UNSET_URL = "http://127.0.0.1:8000"


class _Refused(Exception):
    """Why a command was not carried out."""


@app.command()
def create(
    email: Email,
    name: Annotated[str, typer.Option(help="As others see it; the part before the @ if empty.")] = "",
    role: Annotated[Role, typer.Option(help="What it may do.")] = Role.learner,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input instead of asking.")
    ] = False,
) -> None:
    """Make an account that can be used at once."""
    address = _address(email)
    shown = readable_name(name or address.partition("@")[0])
    if shown is None:
        give_up("This name cannot be used: write one line of up to 80 letters.", USAGE)
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else _ask()
    if weak := weakness(password, name=shown, email=address):
        give_up(weak, USAGE)

    async def work(session: AsyncSession) -> str:
        if await find_opened(session, address) is not None:
            raise _Refused(f"{address} has an account already.")
        hashed = await Passwords().hash(password)
        account = await make_account(
            session, email=address, name=shown, password_hash=hashed, role=role, confirmed=True
        )
        return f"{address} has an account now: @{account.handle}, {role}."

    say(_carry_out(work))


@app.command("invite")
def invite_(email: Email, role: Annotated[Role, typer.Option(help="What the account may do.")] = Role.learner) -> None:
    """Print a link with which somebody makes an account, and mail it where a mail server is set."""
    address = _address(email)
    settings = read_settings()
    if settings.sign_up == "closed":
        give_up("LOCKSTEP_SIGN_UP is closed: no invitation would be accepted.")

    async def work(session: AsyncSession) -> str:
        if await find_opened(session, address) is not None:
            raise _Refused(f"{address} has an account already.")
        token = await invite(session, address, role)
        url = f"{settings.public_url or _UNSET_URL}/{DEFAULT}/sign-up?invitation={token}"
        if settings.smtp_url:
            await post(session, Mail(address, DEFAULT, "accounts/mail/invitation.html", {"url": url}))
        return url

    typer.echo(_carry_out(work, settings))
    say(f"Whoever opens it within {LASTS.days} days makes an account for {address}: {role}.")
    if not settings.public_url:
        say("LOCKSTEP_PUBLIC_URL is not set: put the address of your site in place of its beginning.")


@app.command()
def role(email: Email, role: Annotated[Role, typer.Argument(help="learner, instructor or admin.")]) -> None:
    """Give an account a role."""

    async def work(session: AsyncSession) -> str:
        account = await _account(session, email)
        account.role = role
        return f"{account.email} is {role} now."

    say(_carry_out(work))


@app.command()
def disable(email: Email) -> None:
    """Shut an account: every browser is signed out, and nobody gets in. What it wrote stays."""

    async def work(session: AsyncSession) -> str:
        account = await _account(session, email)
        account.disabled_at = account.disabled_at or now()
        await end_all(session, account)
        return f"{account.email} is shut."

    say(_carry_out(work))


@app.command()
def enable(email: Email) -> None:
    """Open an account again."""

    async def work(session: AsyncSession) -> str:
        account = await _account(session, email)
        account.disabled_at = None
        return f"{account.email} is open."

    say(_carry_out(work))


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every account."""

    async def work(session: AsyncSession) -> list[Account]:
        return list(await session.scalars(select(Account).order_by(Account.created_at)))

    rows = [
        {
            "email": account.email,
            "handle": account.handle,
            "name": account.name,
            "role": account.role,
            "state": _state(account),
            "created_at": account.created_at.isoformat(timespec="seconds"),
        }
        for account in _carry_out(work)
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        typer.echo(f"{row['state']:<12} {row['role']:<11} {row['email']}  @{row['handle']}  {row['name']}")
    if not rows:
        say("There is no account yet.")


def _state(account: Account) -> str:
    return "shut" if account.disabled_at else "open" if account.email_confirmed_at else "unconfirmed"


def _ask() -> str:
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return password


def _address(email: str) -> str:
    address = readable_email(email)
    if address is None:
        give_up(f"{email[:320]!r} is no e-mail address.", USAGE)
    return address


async def _account(session: AsyncSession, email: str) -> Account:
    account = await find_by_email(session, email)
    if account is None:
        raise _Refused(f"There is no account of {email[:320]}.")
    return account


def _carry_out(work: Callable[[AsyncSession], Awaitable[T]], settings: Settings | None = None) -> T:
    """Do it in one transaction, on a database that is up to date; exits with a sentence if it cannot be done."""
    settings = settings or read_settings()
    os.umask(0o077)  # a database made here is as private as one that `serve` makes
    upgrade_now(settings)

    async def act() -> T:
        db = Database(settings.database)
        try:
            async with db.writing() as session:
                return await work(session)
        finally:
            await db.close()

    try:
        return asyncio.run(act())
    except _Refused as e:
        give_up(str(e))
    except (SQLAlchemyError, OSError) as e:
        no_database(e)
