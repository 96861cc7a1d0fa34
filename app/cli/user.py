"""``lockstep user``: manages accounts."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.accounts.invitations import INVITATION_LIFETIME, create_invitation
from app.accounts.models import Account, Passkey, Role
from app.accounts.passwords import AsyncPasswordHasher, password_weakness
from app.accounts.second_factor import remove_authenticator
from app.accounts.service import create_account, find_by_email, find_claimed_account
from app.accounts.validation import normalize_email, normalize_name
from app.admin import people
from app.admin.audit import Actor, AuditAction, record_action
from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.transaction import CommandRefused, run_in_transaction
from app.cli.web_user import leave_root
from app.i18n import DEFAULT_LANGUAGE
from app.mail.outbox import enqueue
from app.mail.renderer import TemplatedEmail
from app.security_log import SecurityEvent, record

app = typer.Typer(no_args_is_help=True, help="Manage accounts: create, invite, set roles, disable.")

EmailArgument = Annotated[str, typer.Argument(metavar="EMAIL")]
_DEFAULT_URL = "http://127.0.0.1:8000"


@app.callback()
def _begin() -> None:
    """Manage accounts: create, invite, set roles, disable."""
    leave_root()


@app.command()
def create(
    email: EmailArgument,
    name: Annotated[
        str, typer.Option(help="The name that others see. Default: the part of the email before the @.")
    ] = "",
    role: Annotated[Role, typer.Option(help="What the account may do.")] = Role.learner,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input instead of asking.")
    ] = False,
) -> None:
    """Create an account that can sign in immediately."""
    address = _valid_email(email)
    shown = normalize_name(name or address.partition("@")[0])
    if shown is None:
        fail("This name cannot be used. Enter one line of at most 80 characters.", USAGE_ERROR)
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else _prompt_for_password()
    if weak := password_weakness(password, name=shown, email=address):
        fail(weak, USAGE_ERROR)

    async def work(session: AsyncSession) -> str:
        if await find_claimed_account(session, address) is not None:
            raise CommandRefused(f"{address} already has an account.")
        hashed = await AsyncPasswordHasher().hash(password)
        account = await create_account(
            session, email=address, name=shown, password_hash=hashed, role=role, confirmed=True
        )
        if role != Role.learner:
            record(SecurityEvent.role_changed, account=account.id, reason=role)
        await record_action(session, Actor.of_command(), AuditAction.account_created, account, role)
        return f"Created an account for {address}: @{account.handle}, {role}."

    print_message(run_in_transaction(work))


@app.command("invite")
def invite_(
    email: EmailArgument, role: Annotated[Role, typer.Option(help="What the account may do.")] = Role.learner
) -> None:
    """Print an invitation link, and email it if a mail server is set up."""
    address = _valid_email(email)
    settings = read_settings()
    if settings.sign_up == "closed":
        fail("LOCKSTEP_SIGN_UP is closed, so no invitation would be accepted. Set it to invitation or open.")

    async def work(session: AsyncSession) -> str:
        if await find_claimed_account(session, address) is not None:
            raise CommandRefused(f"{address} already has an account.")
        token = await create_invitation(session, address, role)
        await record_action(session, Actor.of_command(), AuditAction.account_invited, detail=role)
        url = f"{settings.known_url or _DEFAULT_URL}/{DEFAULT_LANGUAGE}/sign-up?invitation={token}"
        if settings.smtp_url:
            await enqueue(
                session, TemplatedEmail(address, DEFAULT_LANGUAGE, "accounts/mail/invitation.html", {"url": url})
            )
        return url

    typer.echo(run_in_transaction(work, settings))
    print_message(
        f"This link creates an account for {address} ({role}). It expires in {INVITATION_LIFETIME.days} days."
    )
    if not settings.public_url:
        print_message(
            "LOCKSTEP_PUBLIC_URL is not set: replace the beginning of the link with the address of your site."
        )


@app.command()
def role(email: EmailArgument, role: Annotated[Role, typer.Argument(help="learner, instructor, or admin.")]) -> None:
    """Set the role of an account."""

    async def work(session: AsyncSession) -> str:
        await people.lock_admins(session)
        account = await _find_account(session, email)
        await people.set_role(session, Actor.of_command(), account, role)
        return f"{account.email} now has the role {role}."

    print_message(run_in_transaction(work))


@app.command()
def disable(email: EmailArgument) -> None:
    """Disable an account: sign it out of every browser and block sign-in. Its comments stay."""

    async def work(session: AsyncSession) -> str:
        await people.lock_admins(session)
        account = await _find_account(session, email)
        await people.disable_account(session, Actor.of_command(), account)
        return f"{account.email} is disabled."

    print_message(run_in_transaction(work))


@app.command()
def reset_second_factor(email: EmailArgument) -> None:
    """Remove the authenticator app, recovery codes and passkeys of an account, and sign it out of every browser."""

    async def work(session: AsyncSession) -> str:
        account = await _find_account(session, email)
        await remove_authenticator(session, account)
        record(SecurityEvent.authenticator_removed, account=account.id, reason="with passkeys, by the operator")
        await session.execute(delete(Passkey).where(Passkey.account_id == account.id))
        await revoke_all_auth_sessions(session, account)
        await record_action(session, Actor.of_command(), AuditAction.second_factor_reset, account)
        return f"{account.email} has no authenticator app and no passkeys any more."

    print_message(run_in_transaction(work))


@app.command()
def enable(email: EmailArgument) -> None:
    """Enable a disabled account."""

    async def work(session: AsyncSession) -> str:
        account = await _find_account(session, email)
        await people.enable_account(session, Actor.of_command(), account)
        return f"{account.email} is enabled."

    print_message(run_in_transaction(work))


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List all accounts."""

    async def work(session: AsyncSession) -> list[Account]:
        return list(await session.scalars(select(Account).order_by(Account.created_at)))

    rows = [
        {
            "email": account.email,
            "handle": account.handle,
            "name": account.name,
            "role": account.role,
            "state": "disabled" if account.disabled_at else "enabled" if account.email_confirmed_at else "unconfirmed",
            "created_at": account.created_at.isoformat(timespec="seconds"),
        }
        for account in run_in_transaction(work)
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        typer.echo(f"{row['state']:<12} {row['role']:<11} {row['email']}  @{row['handle']}  {row['name']}")
    if not rows:
        print_message("There are no accounts yet.")


def _prompt_for_password() -> str:
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return password


def _valid_email(email: str) -> str:
    address = normalize_email(email)
    if address is None:
        fail(f"{email[:320]!r} is not an email address.", USAGE_ERROR)
    return address


async def _find_account(session: AsyncSession, email: str) -> Account:
    account = await find_by_email(session, email)
    if account is None:
        raise CommandRefused(f"There is no account for {email[:320]}.")
    return account
