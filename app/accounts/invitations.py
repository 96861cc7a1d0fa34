"""Invitations: links that let somebody create an account where sign-up is not open to everyone."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Invitation, Role
from app.accounts.tokens import token_hash
from app.db import now
from app.errors import PermissionDenied
from app.i18n import N_

INVITATION_LIFETIME = timedelta(days=14)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class InvalidInvitation(PermissionDenied):
    message = N_("This invitation has expired, was already used, or is not valid. Ask for a new one.")


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


async def create_invitation(session: AsyncSession, email: str, role: Role) -> str:
    """Create an invitation. Returns the token for its link."""
    token = secrets.token_urlsafe(32)
    moment = now()
    row = {
        "email": email,
        "role": role,
        "created_at": moment,
        "expires_at": moment + INVITATION_LIFETIME,
        "used_at": None,
    }
    session.add(Invitation(token_hash=token_hash(token), **row))
    await session.flush()
    return token


async def find_invitation(session: AsyncSession, token: str) -> ValidInvitation:
    """The invitation with this token. Raises InvalidInvitation."""
    found = await session.get(Invitation, token_hash(token)) if _TOKEN.fullmatch(token) else None
    if found is None or found.used_at is not None or found.expires_at <= now():
        raise InvalidInvitation
    return ValidInvitation(found.token_hash, found.email, Role(found.role))


async def use_invitation(session: AsyncSession, invitation: ValidInvitation) -> None:
    """Mark it as used. Raises InvalidInvitation if another request was faster."""
    mine = update(Invitation).where(Invitation.token_hash == invitation.token_hash, Invitation.used_at.is_(None))
    used = await session.execute(mine.values(used_at=now()).returning(Invitation.token_hash))
    if used.scalar_one_or_none() is None:
        raise InvalidInvitation


def check_sign_up_allowed(policy: str, invitation: ValidInvitation | None) -> None:
    """Check whether an account can be created at all. Raises SignUpClosed or InvitationRequired. Pure."""
    if policy == "closed":
        raise SignUpClosed
    if policy == "invitation" and invitation is None:
        raise InvitationRequired
