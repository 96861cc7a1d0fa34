"""Tries of a request: by whom they are counted, and when they are taken off the count again."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts.rate_limit import (
    ATTEMPTS_PER_ACCOUNT,
    ATTEMPTS_PER_NETWORK,
    EMAILS_PER_NETWORK,
    EMAILS_PER_RECIPIENT,
    account_limit_key,
    count_attempt,
    network_limit_key,
    refund_attempt,
    reset_attempts,
)
from app.accounts.trusted_devices import trusted_device_key
from app.db import Database
from app.web.client_network import client_network


async def count_auth_attempt(request: Request, what: str, who: str) -> None:
    """Count a guess at one account, and from where it came; of a browser that it knows, apart from all others'.

    Raises TooManyAttempts.
    """
    db: Database = request.app.state.db
    own = trusted_device_key(request, what, who)
    async with db.writing() as session:
        if own is None:
            await count_attempt(session, network_limit_key(what, client_network_of(request)), ATTEMPTS_PER_NETWORK)
        await count_attempt(session, own or account_limit_key(what, who), ATTEMPTS_PER_ACCOUNT)


async def clear_auth_attempts(request: Request, session: AsyncSession, what: str, who: str) -> None:
    """The guess that was counted last was none: the account begins anew, and its network has one less."""
    own = trusted_device_key(request, what, who)
    if own is None:
        await refund_attempt(
            session, network_limit_key(what, client_network_of(request))
        )  # locked in the order of count_tries
    await reset_attempts(session, own or account_limit_key(what, who))


async def count_email_request(request: Request, what: str, email: str) -> None:
    """Count a mail that somebody wants sent to an address, whoever has it. Raises TooManyAttempts."""
    db: Database = request.app.state.db
    async with db.writing() as session:
        await count_attempt(session, network_limit_key(what, client_network_of(request)), EMAILS_PER_NETWORK)
        await count_attempt(session, account_limit_key(what, email), EMAILS_PER_RECIPIENT)


async def clear_email_requests(request: Request, session: AsyncSession, what: str, email: str) -> None:
    """Whoever wanted the mail owns the address: it counts no more."""
    await refund_attempt(session, network_limit_key(what, client_network_of(request)))
    await reset_attempts(session, account_limit_key(what, email))


def client_network_of(request: Request) -> str | None:
    """The network that a request came from; None if it is not counted."""
    return client_network(request.client.host if request.client else None)
