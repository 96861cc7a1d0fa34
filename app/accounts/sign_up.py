"""Making an account: what was typed is judged, and an address that has one gets a mail instead of an answer here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import available_timezones

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.email_links import LinkPurpose
from app.accounts.emails import AccountMailer
from app.accounts.invitations import ValidInvitation
from app.accounts.models import Account, Role
from app.accounts.passwords import password_weakness
from app.accounts.service import create_account, find_claimed_account
from app.accounts.validation import INVALID_EMAIL, INVALID_NAME, email_key, normalize_email, normalize_name
from app.db import advisory_lock, now
from app.i18n import N_

INVITATION_FOR_OTHER_EMAIL = N_("This invitation is for another address. Sign up with the address that it was sent to.")


@dataclass(frozen=True, slots=True)
class SignUpRequest:
    """Who wants an account."""

    email: str
    name: str
    language: str
    time_zone: str


def validate_sign_up(
    form: Mapping[str, str], language: str, invited: ValidInvitation | None
) -> tuple[SignUpRequest, dict[str, str]]:
    """What was typed, and by field what is wrong with it, as messages to be translated. Pure."""
    email, name = normalize_email(form.get("email", "")), normalize_name(form.get("name", ""))
    wrong: dict[str, str] = {}
    if name is None:
        wrong["name"] = INVALID_NAME
    if email is None:
        wrong["email"] = INVALID_EMAIL
    elif invited is not None and invited.email and email_key(invited.email) != email_key(email):
        wrong["email"] = INVITATION_FOR_OTHER_EMAIL
    if weak := password_weakness(form.get("password", ""), name=name or "", email=email or ""):
        wrong["password"] = weak
    return SignUpRequest(email or "", name or "", language, time_zone_or_utc(form.get("time_zone", ""))), wrong


def time_zone_or_utc(name: str) -> str:
    """The name, if the tz database has it; UTC otherwise. Pure."""
    return name if name in available_timezones() else "UTC"


async def sign_up(
    session: AsyncSession,
    newcomer: SignUpRequest,
    password_hash: str,
    invited: ValidInvitation | None,
    mailer: AccountMailer,
) -> Account | None:
    """Make an account and mail a link that opens it. Returns it if it is open already: the invitation was mailed there.

    An address that has an account gets a mail that says so. Who signs up again before the link was opened replaces what
    was typed before; the link asks for the password, so only who typed it last gets in.
    """
    await advisory_lock(session, f"address {email_key(newcomer.email)}")
    if (account := await find_claimed_account(session, newcomer.email)) is not None:
        await mailer.already(session, account)
        return None
    account = await create_account(
        session,
        email=newcomer.email,
        name=newcomer.name,
        password_hash=password_hash,
        role=invited.role if invited is not None else Role.learner,
        language=newcomer.language,
        time_zone=newcomer.time_zone,
    )
    if invited is not None and invited.email:
        account.email_confirmed_at = now()
        return account
    await mailer.link(session, account, LinkPurpose.confirm, account.email)
    return None
