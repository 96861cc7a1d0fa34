"""Invitations: links that let somebody create an account where sign-up is not open to everyone.

One without an address and for the role of admin is a setup link: ``lockstep serve`` prints it while there is no admin,
and whoever opens it first becomes one.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Invitation, Role
from app.accounts.tokens import token_hash
from app.db import advisory_lock, now
from app.errors import PermissionDenied
from app.i18n import N_

INVITATION_LIFETIME = timedelta(days=14)
SETUP_LINK_LIFETIME = timedelta(hours=24)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class InvalidInvitation(PermissionDenied):
    message = N_("This invitation has expired, was already used, or is not valid. Ask for a new one.")


class InvalidSetupLink(InvalidInvitation):
    message = N_(
        "This link has expired, or there is already an admin. If there is none, restart the server: it prints a new "
        "link."
    )


class InvitationRequired(PermissionDenied):
    message = N_("This site is by invitation only. To create an account, open the link in your invitation.")


class SignUpClosed(PermissionDenied):
    message = N_("This site does not accept new accounts.")


@dataclass(frozen=True, slots=True)
class ValidInvitation:
    """What an invitation allows. With ``email``, only that address can use it."""

    token_hash: str
    email: str | None
    role: Role

    @property
    def makes_first_admin(self) -> bool:
        """Whether it is a setup link."""
        return _is_setup_link(self.email, self.role)


async def create_invitation(session: AsyncSession, email: str, role: Role) -> str:
    """Create an invitation. Returns the token for its link."""
    return await _store(session, email, role, INVITATION_LIFETIME)


async def create_setup_link(session: AsyncSession) -> str | None:
    """Create a setup link, and return its token; None if there is an admin."""
    return None if await _has_admin(session) else await _store(session, None, Role.admin, SETUP_LINK_LIFETIME)


async def _store(session: AsyncSession, email: str | None, role: Role, lifetime: timedelta) -> str:
    token = secrets.token_urlsafe(32)
    moment = now()
    row = {
        "email": email,
        "role": role,
        "created_at": moment,
        "expires_at": moment + lifetime,
        "used_at": None,
    }
    session.add(Invitation(token_hash=token_hash(token), **row))
    await session.flush()
    return token


async def find_invitation(session: AsyncSession, token: str) -> ValidInvitation:
    """The invitation with this token. Raises InvalidInvitation."""
    found = await session.get(Invitation, token_hash(token)) if _TOKEN.fullmatch(token) else None
    if found is None:
        raise InvalidInvitation
    setup_link = _is_setup_link(found.email, Role(found.role))
    if found.used_at is not None or found.expires_at <= now() or (setup_link and await _has_admin(session)):
        raise InvalidSetupLink if setup_link else InvalidInvitation
    return ValidInvitation(found.token_hash, found.email, Role(found.role))


async def use_invitation(session: AsyncSession, invitation: ValidInvitation) -> None:
    """Mark it as used. Raises InvalidInvitation if another request was faster."""
    if invitation.makes_first_admin:
        await advisory_lock(session, "first admin")
    mine = update(Invitation).where(Invitation.token_hash == invitation.token_hash, Invitation.used_at.is_(None))
    used = await session.execute(mine.values(used_at=now()).returning(Invitation.token_hash))
    if used.scalar_one_or_none() is None:
        raise InvalidSetupLink if invitation.makes_first_admin else InvalidInvitation
    if invitation.makes_first_admin and await _has_admin(session):  # by another link
        raise InvalidSetupLink


def _is_setup_link(email: str | None, role: Role) -> bool:
    return email is None and role == Role.admin


async def _has_admin(session: AsyncSession) -> bool:
    return bool(await session.scalar(select(exists().where(Account.role == Role.admin))))


def check_sign_up_allowed(policy: str, invitation: ValidInvitation | None) -> None:
    """Check whether an account can be created at all. Raises SignUpClosed or InvitationRequired. Pure."""
    if invitation is not None and invitation.makes_first_admin:
        return
    if policy == "closed":
        raise SignUpClosed
    if policy == "invitation" and invitation is None:
        raise InvitationRequired
