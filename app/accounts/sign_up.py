"""Signing up: the form is validated; an address that already has an account gets an email, not an error on the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated
from zoneinfo import available_timezones

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.email_links import LinkPurpose
from app.accounts.emails import AccountMailer
from app.accounts.invitations import ValidInvitation
from app.accounts.models import Account, Role
from app.accounts.passwords import password_weakness
from app.accounts.service import create_account, find_claimed_account
from app.accounts.validation import INVALID_EMAIL, INVALID_NAME, email_key, normalize_email, normalize_name
from app.db import advisory_lock, now
from app.errors import PermissionDenied
from app.i18n import N_
from app.security_log import SecurityEvent, record
from app.web.dependencies import AppKey
from app.web.forms import local_path

INVITATION_FOR_OTHER_EMAIL = N_("This invitation is for another address. Sign up with the address that it was sent to.")


class EmailTaken(PermissionDenied):
    message = N_(
        "An account with this email address already exists. Choose another address, or make that account an admin with "
        "'lockstep user role'."
    )


FirstAdminRecorder = Callable[[AsyncSession, Account], Awaitable[None]]
"""Records, in the transaction that creates the account, that a setup link has made an admin."""

FIRST_ADMIN_RECORDER = AppKey[FirstAdminRecorder]("first_admin_recorder")
FirstAdminRecorderDep = Annotated[FirstAdminRecorder, Depends(FIRST_ADMIN_RECORDER.from_request)]

InvitedGroupFinder = Callable[[AsyncSession, str], Awaitable[str]]
"""Finds the name of the group that the page at a path invites to; empty if it is no such page."""

INVITED_GROUP_FINDER = AppKey[InvitedGroupFinder]("invited_group_finder")
"""Set by the feature that has groups."""


@dataclass(frozen=True, slots=True)
class SignUpRequest:
    """A validated sign-up form."""

    email: str
    name: str
    language: str
    time_zone: str
    next_path: str | None = None
    """The page of this site to open once the address is confirmed."""


def validate_sign_up(
    form: Mapping[str, str], language: str, invitation: ValidInvitation | None
) -> tuple[SignUpRequest, dict[str, str]]:
    """The normalized form, and error messages by field, to be translated. Pure."""
    email, name = normalize_email(form.get("email", "")), normalize_name(form.get("name", ""))
    errors: dict[str, str] = {}
    if name is None:
        errors["name"] = INVALID_NAME
    if email is None:
        errors["email"] = INVALID_EMAIL
    elif invitation is not None and invitation.email and email_key(invitation.email) != email_key(email):
        errors["email"] = INVITATION_FOR_OTHER_EMAIL
    if weak := password_weakness(form.get("password", ""), name=name or "", email=email or ""):
        errors["password"] = weak
    zone, path = time_zone_or_utc(form.get("time_zone", "")), local_path(form.get("next"))
    return SignUpRequest(email or "", name or "", language, zone, path), errors


def time_zone_or_utc(name: str) -> str:
    """The name if it is in the tz database, else ``UTC``. Pure."""
    return name if name in available_timezones() else "UTC"


async def sign_up(
    session: AsyncSession,
    sign_up_request: SignUpRequest,
    password_hash: str,
    invitation: ValidInvitation | None,
    mailer: AccountMailer,
) -> Account | None:
    """Create an account and email a confirmation link. Returns the account only if its invitation confirms the address.

    An address that already has an account gets an email that says so. Signing up again before the link is opened
    replaces the earlier form; the link asks for the password, so only the person who typed it last gets in. Raises
    EmailTaken for a setup link: it is the operator who has it, and there may be no mail server yet.
    """
    await advisory_lock(session, f"address {email_key(sign_up_request.email)}")
    if (account := await find_claimed_account(session, sign_up_request.email)) is not None:
        if invitation is not None and invitation.makes_first_admin:
            raise EmailTaken
        await mailer.send_already_registered(session, account)
        return None
    account = await create_account(
        session,
        email=sign_up_request.email,
        name=sign_up_request.name,
        password_hash=password_hash,
        role=invitation.role if invitation is not None else Role.learner,
        language=sign_up_request.language,
        time_zone=sign_up_request.time_zone,
    )
    if account.role != Role.learner:
        record(SecurityEvent.role_changed, account=account.id, reason=account.role)
    if invitation is not None and (invitation.email or invitation.makes_first_admin):
        account.email_confirmed_at = now()
        return account
    await mailer.send_link(session, account, LinkPurpose.confirm, account.email, sign_up_request.next_path)
    return None
