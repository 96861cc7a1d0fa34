"""Who asks: what a route may depend on.

``KnownLearner`` and ``Learner`` are the id that runs and progress are kept under, of an account or of a visitor without
one; ``Learner`` makes a visitor of a newcomer. ``CurrentAccount`` is the account if there is one; ``SignedIn``,
``ThisSignIn``, ``AnInstructor`` and ``AnAdmin`` refuse whoever is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import structlog
from fastapi import Depends
from sqlalchemy import String, bindparam, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request

from app.accounts.models import Account, MergedVisitor, Role, SignIn
from app.accounts.sign_in_cookie import correct_account, renew_sign_in, sign_in_of
from app.accounts.sign_ins import LASTS, SEEN_TO, see
from app.accounts.visitor import stay, visitor_of, welcome
from app.db import Database, Moment, now
from app.errors import NotAllowed
from app.i18n import N_
from app.storage import log_failure

_log = structlog.get_logger("accounts")
_WHO = "lockstep.who"
_SIGNED_IN = (  # made once: every request of who is signed in asks it
    select(Account, SignIn)
    .join(SignIn, SignIn.account_id == Account.id)
    .where(
        SignIn.token_hash == bindparam("token", type_=String),
        SignIn.expires_at > bindparam("at", type_=Moment()),
        Account.disabled_at.is_(None),
    )
)


class SignInNeeded(NotAllowed):
    """A page answers with the way to sign in; what asks for JSON or a fragment gets the sentence."""

    status = 401
    code = "sign_in_needed"
    message = N_("Sign in first.")


class RoleNeeded(NotAllowed):
    code = "role_needed"
    message = N_("Your account is not allowed to do this.")


@dataclass(frozen=True, slots=True)
class Who:
    """Whoever asks. Both are None for someone who has only read so far."""

    learner_id: str | None
    account: Account | None
    sign_in: SignIn | None = None
    """The sign-in of this browser, where there is an account."""


async def who(request: Request) -> Who:
    """Look up whoever asks, once a request."""
    if (known := request.scope.get(_WHO)) is None:
        known = request.scope[_WHO] = await _look_up(request)
        correct_account(request, known.account.learner_id if known.account else None)
    return known


async def _look_up(request: Request) -> Who:
    db: Database = request.app.state.db
    token, visitor = sign_in_of(request), visitor_of(request)
    if token is None and visitor is None:
        return Who(None, None)
    async with db.session() as session:
        found = (await session.execute(_SIGNED_IN, {"token": token, "at": now()})).one_or_none() if token else None
        if found is None and visitor is not None and await session.get(MergedVisitor, visitor) is not None:
            visitor = None
    if found is None:
        return Who(visitor, None)
    account, sign_in = found
    await _keep(request, db, sign_in)
    return Who(account.learner_id, account, sign_in)


async def _keep(request: Request, db: Database, sign_in: SignIn) -> None:
    """It lasts from its last use on; that is noted, and the cookie renewed, every few minutes.

    A page that is only read does not fail because this could not be stored: the next request notes it.
    """
    if now() - sign_in.seen_at < SEEN_TO:
        return
    try:
        async with db.writing() as session:
            await see(session, sign_in.token_hash)
    except SQLAlchemyError as e:
        log_failure(_log, "the use of a sign-in could not be noted", e)
    else:
        renew_sign_in(request, int(LASTS.total_seconds()))


async def _known_learner(request: Request) -> str | None:
    return (await who(request)).learner_id


async def _learner(request: Request) -> str:
    asks = await who(request)
    if asks.learner_id is None:
        asks = request.scope[_WHO] = Who(welcome(request), None)
    elif asks.account is None:
        stay(request)
    assert asks.learner_id is not None
    return asks.learner_id


async def _current_account(request: Request) -> Account | None:
    return (await who(request)).account


async def _signed_in(request: Request) -> Account:
    account = (await who(request)).account
    if account is None:
        raise SignInNeeded
    return account


async def _this_sign_in(request: Request) -> SignIn:
    sign_in = (await who(request)).sign_in
    if sign_in is None:
        raise SignInNeeded
    return sign_in


async def _instructor(request: Request) -> Account:
    return _at_least(await _signed_in(request), Role.instructor)


async def _admin(request: Request) -> Account:
    return _at_least(await _signed_in(request), Role.admin)


def _at_least(account: Account, role: Role) -> Account:
    ranks = list(Role)
    if ranks.index(Role(account.role)) < ranks.index(role):
        raise RoleNeeded
    return account


KnownLearner = Annotated[str | None, Depends(_known_learner)]
Learner = Annotated[str, Depends(_learner)]
CurrentAccount = Annotated[Account | None, Depends(_current_account)]
SignedIn = Annotated[Account, Depends(_signed_in)]
ThisSignIn = Annotated[SignIn, Depends(_this_sign_in)]
AnInstructor = Annotated[Account, Depends(_instructor)]
AnAdmin = Annotated[Account, Depends(_admin)]
