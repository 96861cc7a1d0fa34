"""Ways to sign in other than the password. A new password does not disable them, so its email lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.identities import list_identities
from app.accounts.identity_providers import IdentityProvider
from app.accounts.models import Account
from app.accounts.passkeys import list_passkeys


@dataclass(frozen=True, slots=True)
class AuthMethod:
    """A passkey or a linked site, and the page where it can be removed."""

    name: str
    route: str
    route_params: Mapping[str, str]


async def list_passwordless_methods(
    session: AsyncSession, account: Account, providers: Mapping[str, IdentityProvider]
) -> Sequence[AuthMethod]:
    """The account's passkeys, and the identity providers it is linked to."""
    passkeys = await list_passkeys(session, account)
    linked = {each.issuer for each in await list_identities(session, account)}
    return [
        *(AuthMethod(each.name, "passkey_page", {"passkey": each.id}) for each in passkeys),
        *(
            AuthMethod(provider.settings.label, "provider_page", {"provider": name})
            for name, provider in providers.items()
            if provider.settings.issuer in linked
        ),
    ]
