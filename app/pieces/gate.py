"""Pieces that a signed-in browser gets again before routing, because SQL says the same of it as when it got them.

Each answer is kept under a digest of all that it was made from: the cookies and the URL of the request, the row that
``PrincipalQuery`` found for its session (the account, the auth session, and the facts of all pieces), the day, and the
editions of the lessons. So the query is asked each time, a change needs no announcement and may come from any process,
and nobody can get what was kept for somebody else. Everything else (strangers, messages that are shown once, cookies
to renew) goes to the route.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.accounts.auth_sessions import SEEN_AT_PRECISION
from app.accounts.dependencies import find_viewer
from app.accounts.models import AuthSession
from app.db import now
from app.i18n import LANGUAGE_CODES
from app.pieces.composer import PIECE_COMPOSER
from app.pieces.kept_answer import KeptAnswer
from app.security_log import identify
from app.web.matched_route import note_route

_PATH = re.compile(f"/(?:{'|'.join(LANGUAGE_CODES)})/pieces")
_SCOPE_KEY = "lockstep.piece_answer"


def keep_answer(scope: Scope, response: Response, auth_session: AuthSession) -> None:
    """Let this browser get the response again, which sets no cookies, until its use has to be recorded."""
    if (key := scope.get(_SCOPE_KEY)) is not None:
        lasts = auth_session.last_seen_at + SEEN_AT_PRECISION - now()
        headers, body = tuple(response.raw_headers), bytes(response.body)
        answer = KeptAnswer(headers, body, auth_session.account_id, scope["route"])
        PIECE_COMPOSER.get(scope["app"]).answers.keep(key, answer, lasts.total_seconds())


class PiecesGate:
    """Gives pieces again; everything else is passed on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not _PATH.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        key = await _answer_key(scope["app"], scope)
        kept = PIECE_COMPOSER.get(scope["app"]).answers.find(key) if key is not None else None
        if kept is None:
            scope[_SCOPE_KEY] = key
            await self._app(scope, receive, send)
        else:
            identify(kept.account_id)
            note_route(scope, kept.route)
            await kept.send(send)


async def _answer_key(app: FastAPI, scope: Scope) -> bytes | None:
    """All that the answer depends on; None if nobody is signed in."""
    composer, asked = PIECE_COMPOSER.get(app), Headers(scope=scope)
    if (row := await find_viewer(scope, composer.principal_query)) is None:
        return None
    request = asked.getlist("cookie"), scope["path"], scope["query_string"], "gzip" in asked.get("accept-encoding", "")
    return blake2b(repr((*request, row, composer.edition())).encode(), digest_size=32).digest()
