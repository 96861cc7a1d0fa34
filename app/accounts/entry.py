"""Signing a browser in and out: what happens to its cookies, and to what it did before."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts import said
from app.accounts.devices import remember
from app.accounts.merge import Merged, merge_visitor
from app.accounts.models import Account
from app.accounts.sign_in_cookie import keep_sign_in, sign_in_of, tell_account
from app.accounts.sign_ins import LASTS, end_sign_in, start_sign_in
from app.accounts.visitor import forget_visitor, visitor_of
from app.errors import NotAllowed
from app.i18n import N_


class AccountDisabled(NotAllowed):
    code = "account_disabled"
    message = N_("This account has been closed by whoever runs this site.")


@dataclass(frozen=True, slots=True)
class Entrance:
    """A sign-in that has been stored; ``open_door`` gives it to the browser once that is committed."""

    token: str
    email: str
    learner_id: str
    merged: Merged


async def enter(
    request: Request, session: AsyncSession, account: Account, *, method: str, new: bool = False
) -> Entrance:
    """Sign the browser in, with a token it never had, and make what it did the account's. Raises AccountDisabled.

    ``new``: this is the first time anyone gets into the account.
    """
    if account.disabled_at is not None:
        raise AccountDisabled
    if (before := sign_in_of(request)) is not None:
        await end_sign_in(session, before)
    visitor, merged = visitor_of(request), Merged()
    if visitor is not None:
        merged = await merge_visitor(session, visitor, account, request.app.state.mergers, adopt=new)
    agent, address = request.headers.get("user-agent", ""), request.client.host if request.client else ""
    token = await start_sign_in(session, account, method=method, agent=agent, address=address)
    return Entrance(token, account.email, account.learner_id, merged)


def open_door(request: Request, entrance: Entrance, *passkey: str, what: str = "signed_in") -> None:
    """Give the browser its cookies, take the visitor's back, and have it told ``what``, and what came in."""
    keep_sign_in(request, entrance.token, int(LASTS.total_seconds()))
    tell_account(request, entrance.learner_id)
    remember(request, entrance.email, *passkey)
    if visitor_of(request) is not None:
        forget_visitor(request)
    said.say(request, what, **{"adopted": 1} if entrance.merged.adopted else dict(entrance.merged.brought))


async def leave(request: Request, session: AsyncSession) -> None:
    """Sign the browser out."""
    if (held := sign_in_of(request)) is not None:
        await end_sign_in(session, held)
    close_door(request)


def close_door(request: Request) -> None:
    """Take the sign-in back from the browser, and have its pages forget what they keep there."""
    keep_sign_in(request, "", 0)
    tell_account(request, None)
