"""Who asks the API: the account behind the token in the header ``Authorization``. Cookies and addresses do not count.

A route asks for a scope: ``caller: Annotated[ApiCaller, api_caller(TokenScope.progress)]``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from fastapi import Security
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request

from app.accounts.api_tokens import TokenScope, find_token, scopes_of, touch_token, used_today
from app.accounts.models import Account, ApiToken
from app.database_health import log_failure
from app.db import Database
from app.errors import PermissionDenied, TooManyRequests
from app.i18n import N_
from app.security_log import SecurityEvent, identify, record
from app.web.dependencies import DATABASE, AppKey

REQUESTS_PER_WINDOW = 300
WINDOW_S = 60.0

_log = structlog.get_logger("accounts")
_CHALLENGE = "Bearer"


class TokenRequired(PermissionDenied):
    status = 401
    message = N_("This address needs an API token. Send one in the header Authorization: Bearer TOKEN.")

    @property
    def headers(self) -> dict[str, str]:
        return {"www-authenticate": _CHALLENGE}


class InvalidToken(PermissionDenied):
    """The same message for every reason, so that it does not reveal whether there is such a token."""

    status = 401
    message = N_("This API token is not valid, or no longer. Create a new one under Settings, API tokens.")

    @property
    def headers(self) -> dict[str, str]:
        return {"www-authenticate": f'{_CHALLENGE} error="invalid_token"'}


class ScopeRequired(PermissionDenied):
    message = N_("This API token lacks the scope {scope}. Create one that has it under Settings, API tokens.")

    @property
    def headers(self) -> dict[str, str]:
        return {"www-authenticate": f'{_CHALLENGE} error="insufficient_scope", scope="{self.values["scope"]}"'}


class TokenRateLimited(TooManyRequests):
    message = N_("This API token has made {most} requests within a minute, and that is the limit. Wait, then go on.")

    def __init__(self, delay_s: float) -> None:
        super().__init__(most=REQUESTS_PER_WINDOW)
        self.retry_after_s = max(1, math.ceil(delay_s))


class ApiBudget:
    """Counts the requests of each token within a window of time. Each web process counts separately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._spent: dict[str, int] = {}

    def spend(self, token: str) -> None:
        """Count a request. Raises TokenRateLimited."""
        at = self._clock()
        if at - self._began >= WINDOW_S:
            self._began, self._spent = at, {}
        spent = self._spent.get(token, 0)
        if spent >= REQUESTS_PER_WINDOW:
            raise TokenRateLimited(self._began + WINDOW_S - at)
        self._spent[token] = spent + 1


API_BUDGET = AppKey[ApiBudget]("api_budget")


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """The account for which a program reads, and its token."""

    account: Account
    token: ApiToken


_BEARER = HTTPBearer(
    scheme_name="token", auto_error=False, description="An API token, from Settings, API tokens.", bearerFormat="opaque"
)


def api_caller(*scopes: TokenScope) -> Any:
    """A dependency: the caller, whose token has these scopes.

    Raises TokenRequired, InvalidToken, TokenRateLimited or ScopeRequired.
    """

    described = Security(_BEARER, scopes=list(scopes))

    async def dependency(request: Request, _: HTTPAuthorizationCredentials | None = described) -> ApiCaller:
        caller = await _identify(request)
        for scope in scopes:
            if scope not in scopes_of(caller.token):
                record(SecurityEvent.api_token_refused, reason=f"lacks {scope}")
                raise ScopeRequired(scope=scope)
        return caller

    return Security(dependency)


async def _identify(request: Request) -> ApiCaller:
    db = DATABASE.get(request.app)
    token = _read_token(request)
    async with db.session() as session:
        found = await find_token(session, token)
    if found is None:
        record(SecurityEvent.api_token_refused, reason="not valid")
        raise InvalidToken
    stored, account = found
    identify(account.id)
    API_BUDGET.get(request.app).spend(stored.token_hash)
    await _touch(db, stored)
    return ApiCaller(account, stored)


def _read_token(request: Request) -> str:
    """The token in the only header that may have one."""
    sent = request.headers.getlist("authorization")
    scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    if scheme.lower() != _CHALLENGE.lower():
        raise TokenRequired
    return token.strip(" ")


async def _touch(db: Database, token: ApiToken) -> None:
    """Once a day. A request does not fail because this could not be stored."""
    if used_today(token):
        return
    try:
        async with db.writing() as session:
            await touch_token(session, token)
    except SQLAlchemyError as e:
        log_failure(_log, "the use of an API token could not be recorded", e)
