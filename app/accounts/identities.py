"""Identities: accounts at identity providers that sign in here. Only the owner of an account can link one to it.

An unknown identity never signs in to an account with the same address: the owner of the address at the provider may not
be the person who created the account.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.email_links import revoke_links
from app.accounts.identity_providers import UserInfo
from app.accounts.impersonation import name_misleads
from app.accounts.invitations import ValidInvitation, check_sign_up_allowed, use_invitation
from app.accounts.models import Account, Identity, Passkey, Role
from app.accounts.service import create_account, find_claimed_account, lock_account
from app.accounts.validation import email_key
from app.db import advisory_lock, now
from app.errors import LockstepError, NotFound, PermissionDenied
from app.i18n import N_
from app.security_log import SecurityEvent, record


class EmailAlreadyRegistered(PermissionDenied):
    message = N_(
        "An account with this email address already exists. Sign in to it as you usually do, then link "
        "the other site under Settings, Security."
    )


class EmailNotVerified(PermissionDenied):
    message = N_("The other site has no confirmed email address for you. Confirm your address there, then try again.")


class InvitationEmailMismatch(PermissionDenied):
    message = N_("This invitation is for another address. Sign up with the address that it was sent to.")


class IdentityAlreadyLinked(LockstepError):
    status = 409
    message = N_("This account from the other site is already linked to another account here.")


class ProviderAlreadyLinked(LockstepError):
    status = 409
    message = N_("Your account is already linked to the other site.")


class ProviderNotLinked(NotFound):
    message = N_("Your account is not linked to this site.")


class LastAuthMethod(PermissionDenied):
    status = 409
    message = N_("You cannot remove your only way to sign in. Set a password first.")


async def find_account_by_identity(session: AsyncSession, person: UserInfo) -> Account | None:
    """The account that this identity is linked to, read afresh and locked."""
    found = await session.get(Identity, (person.issuer, person.subject))
    if found is None:
        return None
    return await session.get(Account, found.account_id, populate_existing=True, with_for_update=True)


async def link_identity(session: AsyncSession, account: Account, person: UserInfo) -> None:
    """Let the identity sign in to this account. Raises IdentityAlreadyLinked or ProviderAlreadyLinked."""
    await advisory_lock(session, f"identity {person.issuer} {person.subject}")
    account = await lock_account(session, account)
    found = await session.get(Identity, (person.issuer, person.subject))
    if found is not None and found.account_id != account.id:
        raise IdentityAlreadyLinked
    if await _find_by_issuer(session, account, person.issuer) is not None:
        raise ProviderAlreadyLinked
    row = {"account_id": account.id, "email": person.email or "", "created_at": now()}
    session.add(Identity(issuer=person.issuer, subject=person.subject, **row))
    await session.flush()


async def sign_up_with_identity(
    session: AsyncSession, person: UserInfo, policy: str, invitation: ValidInvitation | None, language: str
) -> Account:
    """Create an account for somebody whose address an identity provider has confirmed.

    A name that could be mistaken for staff is left out.
    An unconfirmed account with that address becomes theirs: whoever created it did not own the address.
    Raises SignUpClosed, InvitationRequired, InvalidInvitation, InvitationEmailMismatch, EmailNotVerified or
    EmailAlreadyRegistered.
    """
    if person.email is None:
        raise EmailNotVerified
    await advisory_lock(session, f"address {email_key(person.email)}")
    if await find_claimed_account(session, person.email) is not None:
        raise EmailAlreadyRegistered
    check_sign_up_allowed(policy, invitation)
    if invitation is not None:
        if invitation.email and email_key(invitation.email) != email_key(person.email):
            raise InvitationEmailMismatch
        await use_invitation(session, invitation)
    role = invitation.role if invitation is not None else Role.learner
    name = person.name if person.name and not await name_misleads(session, person.name, role) else None
    account = await create_account(session, email=person.email, name=name, role=role, language=language, confirmed=True)
    if role != Role.learner:
        record(SecurityEvent.role_changed, account=account.id, reason=role)
    await revoke_links(session, account)
    await link_identity(session, account, person)
    return account


async def list_identities(session: AsyncSession, account: Account) -> Sequence[Identity]:
    mine = select(Identity).where(Identity.account_id == account.id).order_by(Identity.created_at)
    return (await session.scalars(mine)).all()


async def find_identity(session: AsyncSession, account: Account, issuer: str) -> Identity:
    """The account's identity at this issuer. Raises ProviderNotLinked."""
    found = await _find_by_issuer(session, account, issuer)
    if found is None:
        raise ProviderNotLinked
    return found


async def unlink_identity(session: AsyncSession, account: Account, issuer: str, issuers: Collection[str]) -> None:
    """Unlink the identity at this issuer.

    Raises ProviderNotLinked, or LastAuthMethod if it is the only way to sign in.
    """
    account = await lock_account(session, account)
    found = await find_identity(session, account, issuer)
    await require_another_auth_method(session, account, issuers)
    await session.delete(found)
    await session.flush()


async def require_another_auth_method(session: AsyncSession, account: Account, issuers: Collection[str]) -> None:
    """Raise LastAuthMethod if the account has only one way to sign in. ``issuers`` are those of enabled providers."""
    passkeys = select(func.count()).select_from(Passkey).where(Passkey.account_id == account.id)
    others = select(func.count()).select_from(Identity).where(Identity.account_id == account.id)
    methods = (await session.scalar(passkeys) or 0) + (account.password_hash is not None)
    methods += await session.scalar(others.where(Identity.issuer.in_(issuers))) or 0
    if methods < 2:
        raise LastAuthMethod


async def _find_by_issuer(session: AsyncSession, account: Account, issuer: str) -> Identity | None:
    mine = select(Identity).where(Identity.account_id == account.id, Identity.issuer == issuer)
    return await session.scalar(mine)
