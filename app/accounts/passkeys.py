"""Passkeys (WebAuthn): a device keeps a key for this site and, after verifying its user, signs a challenge with it."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.datastructures import URL
from webauthn import (
    base64url_to_bytes,
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import bytes_to_base64url, parse_client_data_json
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from app.accounts.auth_challenges import revoke_challenges
from app.accounts.email_links import revoke_links
from app.accounts.identities import require_another_auth_method
from app.accounts.models import Account, Passkey
from app.accounts.second_factor import forget_passkeys
from app.accounts.service import lock_account
from app.db import now
from app.errors import LockstepError, NotFound
from app.i18n import N_

MAX_PASSKEYS = 20
"""Per account."""
_CREDENTIAL_ID = re.compile(r"[A-Za-z0-9_-]{1,400}")
_TRANSPORTS = frozenset({"usb", "nfc", "ble", "smart-card", "hybrid", "internal", "cable"})


class PasskeyRejected(LockstepError):
    """The same message for every reason, so that it reveals none."""

    status = 422
    message = N_("No account here uses this passkey. Sign in another way, or try another passkey.")


class InvalidPasskeyResponse(LockstepError):
    status = 422
    message = N_("Your device's response could not be verified. Try again.")


class PasskeyAlreadyRegistered(LockstepError):
    status = 409
    message = N_("This passkey is already in use.")


class TooManyPasskeys(LockstepError):
    status = 409
    message = N_("You have 20 passkeys. Remove one before you add another.")


class PasskeyNotFound(NotFound):
    message = N_("This passkey does not exist.")


class PasskeysUnsupported(LockstepError):
    status = 409
    message = N_("Passkeys do not work at this address.")


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The relying party of WebAuthn: a domain, and the origin of the pages that may use its passkeys."""

    id: str
    origin: str


def site_relying_party(public_url: str, base_url: URL) -> RelyingParty | None:
    """The relying party of this site, requested at ``base_url``; None if passkeys do not work there. Pure."""
    if public_url:
        return relying_party_at(public_url)
    return relying_party_at(str(base_url).rstrip("/")) if base_url.hostname == "localhost" else None


def relying_party_at(address: str) -> RelyingParty | None:
    """The relying party at a URL: a domain name over HTTPS, or localhost; else None. Pure."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
        return RelyingParty(host, address) if host and (parts.scheme == "https" or local) else None
    return None


def localhost_url(public_url: str, base_url: URL) -> str:
    """The same site under ``localhost``, where passkeys work, if it is on this machine; else an empty string."""
    loopback = base_url.hostname in ("127.0.0.1", "::1") and not public_url
    return str(base_url.replace(hostname="localhost")).rstrip("/") if loopback else ""


def read_challenge(credential: Mapping[str, Any]) -> str:
    """The challenge that a response claims to answer. Raises InvalidPasskeyResponse. Pure."""
    try:
        told = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"]))
        return bytes_to_base64url(told.challenge)
    except Exception as e:  # untrusted input, on which the library raises many kinds of errors
        raise InvalidPasskeyResponse from e


def read_credential_id(credential: Mapping[str, Any]) -> str:
    """The ID of the passkey that responded. Raises InvalidPasskeyResponse. Pure."""
    found = credential.get("id")
    if not isinstance(found, str) or not _CREDENTIAL_ID.fullmatch(found):
        raise InvalidPasskeyResponse
    return found


def authentication_options(place: RelyingParty, challenge: str) -> dict[str, Any]:
    """The options for ``navigator.credentials.get``: any passkey of this relying party."""
    seen = UserVerificationRequirement.REQUIRED
    options = generate_authentication_options(
        rp_id=place.id, challenge=base64url_to_bytes(challenge), user_verification=seen
    )
    asked: dict[str, Any] = json.loads(options_to_json(options))
    return asked


async def registration_options(
    session: AsyncSession, place: RelyingParty, account: Account
) -> tuple[str, dict[str, Any]]:
    """A challenge, and the options for ``navigator.credentials.create``. Raises TooManyPasskeys."""
    held = await list_passkeys(session, account)
    if len(held) >= MAX_PASSKEYS:
        raise TooManyPasskeys
    options = generate_registration_options(
        rp_id=place.id,
        rp_name="Lockstep",
        user_id=account.id.encode(),
        user_name=account.email,
        user_display_name=account.name,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=base64url_to_bytes(each.id)) for each in held],
    )
    return bytes_to_base64url(options.challenge), json.loads(options_to_json(options))


async def add_passkey(
    session: AsyncSession,
    place: RelyingParty,
    account: Account,
    name: str,
    challenge: str,
    credential: Mapping[str, Any],
) -> Passkey:
    """Verify and store the passkey that a device has created.

    What was begun without it is invalid: links in emails, and other passkeys, authenticator apps and providers.
    Raises InvalidPasskeyResponse, PasskeyAlreadyRegistered or TooManyPasskeys.
    """
    identifier = read_credential_id(credential)
    try:
        made = verify_registration_response(
            credential=dict(credential),
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=place.id,
            expected_origin=place.origin,
            require_user_verification=True,
        )
    except Exception as e:  # see read_challenge
        raise InvalidPasskeyResponse from e
    account = await lock_account(session, account)
    if await session.get(Passkey, identifier) is not None:
        raise PasskeyAlreadyRegistered
    if len(await list_passkeys(session, account)) >= MAX_PASSKEYS:
        raise TooManyPasskeys
    passkey = Passkey(
        id=identifier,
        account_id=account.id,
        name=name,
        public_key=made.credential_public_key,
        sign_count=made.sign_count,
        transports=_transports(credential),
        created_at=now(),
        last_used_at=None,
    )
    session.add(passkey)
    await revoke_links(session, account)
    await revoke_challenges(session, account)
    await session.flush()
    return passkey


async def verify_passkey(
    session: AsyncSession, place: RelyingParty, challenge: str, credential: Mapping[str, Any]
) -> tuple[Passkey, Account]:
    """The passkey that signed the challenge, and its account. Raises PasskeyRejected or InvalidPasskeyResponse."""
    passkey = await session.get(Passkey, read_credential_id(credential), with_for_update=True)
    if passkey is None:
        raise PasskeyRejected
    try:
        whose = base64url_to_bytes(credential["response"]["userHandle"]).decode()
        used = verify_authentication_response(
            credential=dict(credential),
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=place.id,
            expected_origin=place.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except Exception as e:  # see read_challenge
        raise PasskeyRejected from e
    account = await session.get(Account, passkey.account_id, populate_existing=True, with_for_update=True)
    if account is None or whose != account.id:
        raise PasskeyRejected
    passkey.sign_count, passkey.last_used_at = used.new_sign_count, now()
    await session.flush()
    return passkey, account


async def list_passkeys(session: AsyncSession, account: Account) -> Sequence[Passkey]:
    """The account's passkeys, oldest first."""
    mine = select(Passkey).where(Passkey.account_id == account.id).order_by(Passkey.created_at, Passkey.id)
    return (await session.scalars(mine)).all()


async def find_passkey(session: AsyncSession, account: Account, identifier: str) -> Passkey:
    """The account's passkey with this ID. Raises PasskeyNotFound."""
    found = await session.get(Passkey, identifier) if _CREDENTIAL_ID.fullmatch(identifier) else None
    if found is None or found.account_id != account.id:
        raise PasskeyNotFound
    return found


async def remove_passkey(session: AsyncSession, account: Account, identifier: str, issuers: Collection[str]) -> None:
    """Delete a passkey. Raises PasskeyNotFound, or LastAuthMethod if there is no other way to sign in."""
    account = await lock_account(session, account)
    passkey = await find_passkey(session, account, identifier)
    await require_another_auth_method(session, account, issuers)
    await session.delete(passkey)
    await session.flush()
    if not await list_passkeys(session, account):
        await forget_passkeys(session, account)


def _transports(credential: Mapping[str, Any]) -> str:
    told = credential["response"].get("transports")
    return ",".join(sorted(_TRANSPORTS.intersection(t for t in told if isinstance(t, str)))) if told else ""
