"""Tries of a request: by whom they are counted, and when they are taken off the count again."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts.attempts import (
    OF_ACCOUNT,
    OF_ADDRESS,
    OF_ASKING,
    OF_MAILS,
    account_key,
    address_key,
    count_try,
    forget_tries,
    take_back,
)
from app.accounts.devices import device_key
from app.db import Database
from app.web.origin import origin


async def count_tries(request: Request, what: str, who: str) -> None:
    """Count a guess at one account, and from where it came; of a browser that it knows, apart from all others'.

    Raises TooManyTries.
    """
    db: Database = request.app.state.db
    own = device_key(request, what, who)
    async with db.writing() as session:
        if own is None:
            await count_try(session, address_key(what, place_of_caller(request)), OF_ADDRESS)
        await count_try(session, own or account_key(what, who), OF_ACCOUNT)


async def was_right(request: Request, session: AsyncSession, what: str, who: str) -> None:
    """The guess that was counted last was none: the account begins anew, and its network has one less."""
    own = device_key(request, what, who)
    if own is None:
        await take_back(session, address_key(what, place_of_caller(request)))  # locked in the order of count_tries
    await forget_tries(session, own or account_key(what, who))


async def count_mail(request: Request, what: str, email: str) -> None:
    """Count a mail that somebody wants sent to an address, whoever has it. Raises TooManyTries."""
    db: Database = request.app.state.db
    async with db.writing() as session:
        await count_try(session, address_key(what, place_of_caller(request)), OF_ASKING)
        await count_try(session, account_key(what, email), OF_MAILS)


async def mail_was_opened(request: Request, session: AsyncSession, what: str, email: str) -> None:
    """Whoever wanted the mail owns the address: it counts no more."""
    await take_back(session, address_key(what, place_of_caller(request)))
    await forget_tries(session, account_key(what, email))


def place_of_caller(request: Request) -> str | None:
    """The network that a request came from; None if it is not counted."""
    return origin(request.client.host if request.client else None)
