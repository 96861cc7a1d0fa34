"""Route dependencies that identify the person behind a request.

``OptionalLearnerId`` and ``LearnerId`` are the ID of the learner that owns runs and progress, with or without an
account; ``LearnerId`` creates a visitor if there is none. ``OptionalAccount`` is the account, if any.
``RequiredAccount``, ``RequiredSignIn``, ``RequiredInstructor`` and ``RequiredAdmin`` refuse everyone else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

import structlog
from fastapi import Depends
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm.attributes import set_committed_value
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Scope

from app.accounts.auth_sessions import REAUTHENTICATE_AFTER, SEEN_AT_PRECISION, touch_auth_session
from app.accounts.browser import Browser
from app.accounts.emails import AccountMailer
from app.accounts.models import Account, AuthSession, MergedVisitor, Role
from app.accounts.principal_query import PrincipalQuery
from app.accounts.second_factor import is_missing
from app.accounts.session_cookie import renew_session_cookie, session_token_hash, sync_account_cookie
from app.accounts.signing import SIGNER
from app.accounts.visitor_cookie import create_visitor, read_visitor_id, renew_visitor_cookie
from app.database_health import log_failure
from app.db import Database, now
from app.errors import PermissionDenied
from app.i18n import N_
from app.prepared_query import Row
from app.security_log import SecurityEvent, identify, record
from app.web.client_network import request_address
from app.web.cookies import Cookies, received_cookies, request_cookies
from app.web.dependencies import DATABASE, ONLY_LOCAL, SETTINGS, of_request

_log = structlog.get_logger("accounts")
_SCOPE_KEY = "lockstep.principal"
_ROW_KEY = "lockstep.viewer_row"
_PRINCIPAL_QUERY = PrincipalQuery()


class LoginRequired(PermissionDenied):
    """Rendered as a redirect to the sign-in page; requests for JSON or a fragment get the message."""

    status = 401
    message = N_("Sign in first.")


class RoleRequired(PermissionDenied):
    message = N_("Your account is not allowed to do this.")


class SecondFactorRequired(PermissionDenied):
    """Rendered as a redirect to the page where a second factor is set up."""

    message = N_("Your account needs a passkey or an authenticator app for this. Set one up under Settings, Security.")


@dataclass(frozen=True, slots=True)
class Principal:
    """The person behind a request. ``learner_id`` and ``account`` are None for someone who has only read so far."""

    learner_id: str | None
    account: Account | None
    auth_session: AuthSession | None = None
    """This browser's auth session, if it is signed in."""
    role: Role | None = None
    """The account's. If it lacks the second factor, ``account`` itself says that it is a learner's."""
    pending: bool = False
    """Whether its sign-in waits for the code of the second step: until then it is a visitor."""
    lacks_second_factor: bool = False
    """Whether it is a member of staff's, without the second factor that the operator requires."""
    facts: Row = ()
    """Of a signed-in viewer: those of the query that identified them."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A browser that is signed in to an account."""

    account: Account
    auth_session: AuthSession

    @property
    def recently(self) -> bool:
        """Whether it signed in recently enough to skip reauthentication."""
        return now() - self.auth_session.created_at < REAUTHENTICATE_AFTER


async def get_principal(request: Request, query: PrincipalQuery = _PRINCIPAL_QUERY) -> Principal:
    """Identify the person behind the request; looked up once per request, by the first caller's query."""
    if (known := request.scope.get(_SCOPE_KEY)) is None:
        cookies = request_cookies(request)
        row = await find_viewer(request.scope, query)
        known = request.scope[_SCOPE_KEY] = await _load_principal(request.app, query, row, cookies)
        if known.account is not None:
            identify(known.account.id)
        if not known.pending:
            sync_account_cookie(cookies, known.account.learner_id if known.account else None)
    return known


async def find_viewer(scope: Scope, query: PrincipalQuery) -> Row | None:
    """The database's row about the signed-in viewer; read once per request, by the first caller's query."""
    if (known := scope.get(_ROW_KEY)) is None:
        request = Request(scope)
        token = session_token_hash(received_cookies(request))
        row = await query.row(DATABASE.get(request.app), token, now()) if token else None
        known = scope[_ROW_KEY] = (row,)
    return known[0]


async def _load_principal(app: Starlette, query: PrincipalQuery, row: Row | None, cookies: Cookies) -> Principal:
    """Staff without the second factor that the operator requires are learners to everything that looks at roles."""
    db, visitor = DATABASE.get(app), read_visitor_id(cookies)
    found = query.build(row, db.engine.dialect) if row is not None else None
    pending = found is not None and found.auth_session.pending
    if found is None or pending:
        if visitor is not None and await _is_merged(db, visitor):
            visitor = None
        return Principal(visitor, None, pending=pending)
    account, auth_session = found.account, found.auth_session
    await _touch_session(db, cookies, auth_session)
    role = Role(account.role)
    lacks = is_missing(account, auth_session.method, required_of_staff=SETTINGS.get(app).staff_second_factor)
    if lacks:
        set_committed_value(account, "role", Role.learner)  # only in this object: it belongs to no session any more
    return Principal(account.learner_id, account, auth_session, role, lacks_second_factor=lacks, facts=found.facts)


async def _is_merged(db: Database, visitor: str) -> bool:
    async with db.session() as session:
        return await session.get(MergedVisitor, visitor) is not None


async def _touch_session(db: Database, cookies: Cookies, auth_session: AuthSession) -> None:
    """Extend the session from its last use. The use is recorded, and the cookie renewed, every few minutes.

    A page does not fail because this could not be stored: the next request tries again.
    """
    if now() - auth_session.last_seen_at < SEEN_AT_PRECISION:
        return
    try:
        async with db.writing() as session:
            lasts = await touch_auth_session(session, auth_session)
    except SQLAlchemyError as e:
        log_failure(_log, "the use of an auth session could not be recorded", e)
    else:
        renew_session_cookie(cookies, int(lasts.total_seconds()))


async def _optional_learner_id(request: Request) -> str | None:
    return (await get_principal(request)).learner_id


async def _learner_id(request: Request) -> str:
    asks = await get_principal(request)
    if asks.learner_id is None:
        asks = request.scope[_SCOPE_KEY] = Principal(create_visitor(request_cookies(request)), None)
    elif asks.account is None:
        renew_visitor_cookie(request_cookies(request))
    assert asks.learner_id is not None
    return asks.learner_id


async def _optional_account(request: Request) -> Account | None:
    return (await get_principal(request)).account


async def _required_account(request: Request) -> Account:
    account = (await get_principal(request)).account
    if account is None:
        raise LoginRequired
    return account


async def _required_sign_in(request: Request) -> SignedIn:
    principal = await get_principal(request)
    if principal.account is None or principal.auth_session is None:
        raise LoginRequired
    return SignedIn(principal.account, principal.auth_session)


def _required_role(role: Role) -> Callable[[Request], Awaitable[Account]]:
    async def dependency(request: Request) -> Account:
        account = await _required_account(request)
        if (await get_principal(request)).lacks_second_factor:
            record(SecurityEvent.role_refused, reason=f"second factor required by {request.scope['route'].name}")
            raise SecondFactorRequired
        ranks = list(Role)
        if ranks.index(Role(account.role)) < ranks.index(role):
            record(SecurityEvent.role_refused, reason=f"{role} required by {request.scope['route'].name}")
            raise RoleRequired
        return account

    return dependency


async def is_instructor(request: Request) -> bool:
    """Whether an instructor asks. False while the database is unavailable, so that lessons are still served."""
    if session_token_hash(request_cookies(request)) is None:
        return False
    try:
        account = (await get_principal(request)).account
    except (SQLAlchemyError, OSError):
        return False
    return account is not None and account.role != Role.learner


async def is_admin(request: Request) -> bool:
    """Whether an admin asks, also without the second factor that the operator requires: maintenance must not keep them
    from setting one up. Each route asks for it by itself.
    """
    if session_token_hash(request_cookies(request)) is None:
        return False
    return (await get_principal(request)).role == Role.admin


def browser_of(request: Request) -> Browser:
    """The browser that sent a request."""
    user_agent = request.headers.get("user-agent", "")
    return Browser(request_cookies(request), SIGNER.get(request.app), request_address(request) or "", user_agent)


def account_mailer(request: Request) -> AccountMailer:
    """The mailer whose links begin with the public URL.

    Without one, the URL of the request is used, but only if nobody outside this machine can have forged it.
    """
    base_url = SETTINGS.get(request.app).public_url
    if not base_url and ONLY_LOCAL.get(request.app):
        base_url = str(request.base_url).rstrip("/")
    return AccountMailer(request.app.url_path_for, base_url)


OptionalLearnerId = Annotated[str | None, Depends(_optional_learner_id)]
LearnerId = Annotated[str, Depends(_learner_id)]
OptionalAccount = Annotated[Account | None, Depends(_optional_account)]
RequiredAccount = Annotated[Account, Depends(_required_account)]
RequiredSignIn = Annotated[SignedIn, Depends(_required_sign_in)]
RequiredInstructor = Annotated[Account, Depends(_required_role(Role.instructor))]
RequiredAdmin = Annotated[Account, Depends(_required_role(Role.admin))]
BrowserDep = Annotated[Browser, Depends(of_request(browser_of))]
AccountMailerDep = Annotated[AccountMailer, Depends(of_request(account_mailer))]
