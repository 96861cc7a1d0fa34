"""Making an account: what was typed is judged, and an address that has one gets a mail instead of an answer here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import available_timezones

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.invitations import Invited
from app.accounts.links import Purpose
from app.accounts.mails import Postman
from app.accounts.models import Account, Role
from app.accounts.passwords import weakness
from app.accounts.people import email_key, find_opened, make_account, readable_email, readable_name
from app.db import now, one_at_a_time
from app.i18n import N_

NO_EMAIL = N_("Write a whole e-mail address, such as ada@example.org.")
NO_NAME = N_("Write a name of up to 80 letters.")
OTHER_EMAIL = N_("The invitation is for another address.")


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who wants an account."""

    email: str
    name: str
    language: str
    time_zone: str


def judge(form: Mapping[str, str], language: str, invited: Invited | None) -> tuple[Newcomer, dict[str, str]]:
    """What was typed, and by field what is wrong with it, as messages to be translated. Pure."""
    email, name = readable_email(form.get("email", "")), readable_name(form.get("name", ""))
    wrong: dict[str, str] = {}
    if name is None:
        wrong["name"] = NO_NAME
    if email is None:
        wrong["email"] = NO_EMAIL
    elif invited is not None and invited.email and email_key(invited.email) != email_key(email):
        wrong["email"] = OTHER_EMAIL
    if weak := weakness(form.get("password", ""), name=name or "", email=email or ""):
        wrong["password"] = weak
    return Newcomer(email or "", name or "", language, known_time_zone(form.get("time_zone", ""))), wrong


def known_time_zone(name: str) -> str:
    """The name, if the tz database has it; UTC otherwise. Pure."""
    return name if name in available_timezones() else "UTC"


async def sign_up(
    session: AsyncSession, newcomer: Newcomer, password_hash: str, invited: Invited | None, postman: Postman
) -> Account | None:
    """Make an account and mail a link that opens it. Returns it if it is open already: the invitation was mailed there.

    An address that has an account gets a mail that says so. Who signs up again before the link was opened replaces what
    was typed before; the link asks for the password, so only who typed it last gets in.
    """
    await one_at_a_time(session, f"address {email_key(newcomer.email)}")
    if (account := await find_opened(session, newcomer.email)) is not None:
        await postman.already(session, account)
        return None
    account = await make_account(
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
    await postman.link(session, account, Purpose.confirm, account.email)
    return None
