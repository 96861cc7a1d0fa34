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

from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.accounts.invitations import INVITATION_LIFETIME, create_invitation
from app.accounts.models import Account, Role
from app.accounts.passwords import AsyncPasswordHasher, password_weakness
from app.accounts.service import create_account, find_by_email, find_claimed_account, normalize_email, normalize_name
from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.db import fail_on_database_error, upgrade_database
from app.db import Database, now
from app.i18n import DEFAULT_LANGUAGE
from app.mail.outbox import enqueue
from app.mail.renderer import TemplatedEmail
from app.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Accounts: make them, invite, give them a role, shut them.")
T = TypeVar("T")

EmailArgument = Annotated[str, typer.Argument(metavar="EMAIL")]
_DEFAULT_URL = "http://127.0.0.1:8000"


class _CommandRefused(Exception):
    """Why a command was not carried out."""


@app.command()
def create(
    email: EmailArgument,
    name: Annotated[str, typer.Option(help="As others see it; the part before the @ if empty.")] = "",
    role: Annotated[Role, typer.Option(help="What it may do.")] = Role.learner,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input instead of asking.")
    ] = False,
) -> None:
    """Make an account that can be used at once."""
    address = _valid_email(email)
    shown = normalize_name(name or address.partition("@")[0])
    if shown is None:
        fail("This name cannot be used: write one line of up to 80 letters.", USAGE_ERROR)
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else _prompt_for_password()
    if weak := password_weakness(password, name=shown, email=address):
        fail(weak, USAGE_ERROR)

    async def work(session: AsyncSession) -> str:
        if await find_claimed_account(session, address) is not None:
            raise _CommandRefused(f"{address} has an account already.")
        hashed = await AsyncPasswordHasher().hash(password)
        account = await create_account(
            session, email=address, name=shown, password_hash=hashed, role=role, confirmed=True
        )
        return f"{address} has an account now: @{account.handle}, {role}."

    print_message(_run_in_transaction(work))


@app.command("invite")
def invite_(
    email: EmailArgument, role: Annotated[Role, typer.Option(help="What the account may do.")] = Role.learner
) -> None:
    """Print a link with which somebody makes an account, and mail it where a mail server is set."""
    address = _valid_email(email)
    settings = read_settings()
    if settings.sign_up == "closed":
        fail("LOCKSTEP_SIGN_UP is closed: no invitation would be accepted.")

    async def work(session: AsyncSession) -> str:
        if await find_claimed_account(session, address) is not None:
            raise _CommandRefused(f"{address} has an account already.")
        token = await create_invitation(session, address, role)
        url = f"{settings.public_url or _DEFAULT_URL}/{DEFAULT_LANGUAGE}/sign-up?invitation={token}"
        if settings.smtp_url:
            await enqueue(
                session, TemplatedEmail(address, DEFAULT_LANGUAGE, "accounts/mail/invitation.html", {"url": url})
            )
        return url

    typer.echo(_run_in_transaction(work, settings))
    print_message(f"Whoever opens it within {INVITATION_LIFETIME.days} days makes an account for {address}: {role}.")
    if not settings.public_url:
        print_message("LOCKSTEP_PUBLIC_URL is not set: put the address of your site in place of its beginning.")


@app.command()
def role(email: EmailArgument, role: Annotated[Role, typer.Argument(help="learner, instructor or admin.")]) -> None:
    """Give an account a role."""

    async def work(session: AsyncSession) -> str:
        account = await _find_account(session, email)
        account.role = role
        return f"{account.email} is {role} now."

    print_message(_run_in_transaction(work))


@app.command()
def disable(email: EmailArgument) -> None:
    """Shut an account: every browser is signed out, and nobody gets in. What it wrote stays."""

    async def work(session: AsyncSession) -> str:
        account = await _find_account(session, email)
        account.disabled_at = account.disabled_at or now()
        await revoke_all_auth_sessions(session, account)
        return f"{account.email} is shut."

    print_message(_run_in_transaction(work))


@app.command()
def enable(email: EmailArgument) -> None:
    """Open an account again."""

    async def work(session: AsyncSession) -> str:
        account = await _find_account(session, email)
        account.disabled_at = None
        return f"{account.email} is open."

    print_message(_run_in_transaction(work))


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
            "state": _account_state(account),
            "created_at": account.created_at.isoformat(timespec="seconds"),
        }
        for account in _run_in_transaction(work)
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        typer.echo(f"{row['state']:<12} {row['role']:<11} {row['email']}  @{row['handle']}  {row['name']}")
    if not rows:
        print_message("There is no account yet.")


def _account_state(account: Account) -> str:
    return "shut" if account.disabled_at else "open" if account.email_confirmed_at else "unconfirmed"


def _prompt_for_password() -> str:
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return password


def _valid_email(email: str) -> str:
    address = normalize_email(email)
    if address is None:
        fail(f"{email[:320]!r} is no e-mail address.", USAGE_ERROR)
    return address


async def _find_account(session: AsyncSession, email: str) -> Account:
    account = await find_by_email(session, email)
    if account is None:
        raise _CommandRefused(f"There is no account of {email[:320]}.")
    return account


def _run_in_transaction(work: Callable[[AsyncSession], Awaitable[T]], settings: Settings | None = None) -> T:
    """Do it in one transaction, on a database that is up to date; exits with a sentence if it cannot be done."""
    settings = settings or read_settings()
    os.umask(0o077)  # a database made here is as private as one that `serve` makes
    upgrade_database(settings)

    async def act() -> T:
        db = Database(settings.database)
        try:
            async with db.writing() as session:
                return await work(session)
        finally:
            await db.close()

    try:
        return asyncio.run(act())
    except _CommandRefused as e:
        fail(str(e))
    except (SQLAlchemyError, OSError) as e:
        fail_on_database_error(e)
