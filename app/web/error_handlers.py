"""Turns every error into a response: a page for people, JSON for programs, with the same message. The API has its own.

Wraps the whole application, so that no other module needs to know how errors are shown.
"""

from __future__ import annotations

import structlog
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import i18n
from app.database_health import classify_database_error, log_failure
from app.errors import (
    HttpStatusError,
    InvalidInput,
    LockstepError,
    NotFound,
    PermissionDenied,
    RequestTooLarge,
    UnsupportedMediaType,
)
from app.observability import redact_path, request_id
from app.security_log import SecurityEvent, record
from app.web.api import is_api_path, problem_response
from app.web.rendering import PAGE_SHELL, render_page
from app.web.security_headers import NO_STORE

_REFUSED_INPUT = (InvalidInput, RequestTooLarge, UnsupportedMediaType)
_REFUSED_STATUSES = (400, 413, 415, 422, 431)
"""No page of ours sends what is answered with exactly these. Features derive errors of their own from them for what a
page does send: a machine that its lesson no longer offers, code that is too long, a comment without text."""

_log = structlog.get_logger("errors")


class ErrorHandlers:
    """Handles all uncaught exceptions."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_watched)
        except Exception as e:
            if begun:
                raise
            if not isinstance(e, LockstepError):
                log_failure(_log, "request failed", e, path=redact_path(scope["path"]))
            response = error_response(Request(scope, receive), e)
            await response(scope, receive, send)


async def handle_framework_error(request: Request, error: Exception) -> Response:
    """Handle FastAPI's own errors: an unknown route, a wrong method, a body that does not parse."""
    return error_response(request, error)


def error_response(request: Request, error: Exception) -> Response:
    """The error in the format that the client accepts."""
    problem = as_lockstep_error(error)
    theirs = error.headers if isinstance(error, HTTPException) else None
    if _is_refused_input(problem):
        record(SecurityEvent.input_refused, reason=problem.code)
    headers = {name.lower(): value for name, value in (theirs or {}).items()} | problem.headers | NO_STORE
    if problem.status == 405:
        headers["allow"] = ", ".join(sorted(_allowed_methods(request)))
    message = problem.localized_message().encode(errors="replace").decode()  # it may quote half a surrogate pair
    if is_api_path(request.url.path):
        return problem_response(problem, message, request_id(), headers)
    if _wants_json(request):
        body = {"code": problem.code, "message": message, "request_id": request_id()}
        return JSONResponse({"error": body}, problem.status, headers)
    response = _error_page(request, problem, message)
    response.headers.update(headers)
    return response


def _is_refused_input(problem: LockstepError) -> bool:
    if isinstance(problem, HttpStatusError):
        return problem.status in _REFUSED_STATUSES
    return type(problem) in _REFUSED_INPUT


def as_lockstep_error(error: Exception) -> LockstepError:
    """Convert any error to a LockstepError. Unknown errors become internal ones, and their text stays in the log."""
    match error:
        case LockstepError():
            return error
        case RequestValidationError(body=bytes(body)) if body:  # FastAPI did not take it for JSON
            return UnsupportedMediaType(expected="application/json")
        case RequestValidationError():
            return _validation_error(error)
        case SQLAlchemyError() if (storage := classify_database_error(error)) is not None:
            return storage()
        case HTTPException(status_code=404):
            return NotFound()
        case HTTPException(status_code=403):
            return PermissionDenied()
        case HTTPException(status_code=status) if status < 500:
            return HttpStatusError(status)
        case _:
            return LockstepError()


def _validation_error(error: RequestValidationError) -> LockstepError:
    first = error.errors()[0]
    if first["loc"][0] == "path":
        return NotFound()
    where = ".".join(str(part) for part in first["loc"][1:])
    if where and i18n.current_language() != i18n.DEFAULT_LANGUAGE:
        return InvalidInput(reason=where)  # the details are only available in English
    return InvalidInput(reason=f"{where}: {first['msg']}" if where else first["msg"])


def _allowed_methods(request: Request) -> set[str]:
    """The methods of all routes with this path. Files are served to GET."""
    mounted_at = request.scope.get("app_root_path", request.scope.get("root_path", ""))
    scope = {**request.scope, "root_path": mounted_at}  # inside a mount, the path would begin behind it
    matching = [route for route in request.app.routes if route.matches(scope)[0] is not Match.NONE]
    methods = {method for route in matching for method in getattr(route, "methods", ("GET",))}
    return methods | {"HEAD"} if "GET" in methods else methods


def _wants_json(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return "text/html" not in accept and request.headers.get("hx-request") != "true"


def _error_page(request: Request, problem: LockstepError, message: str) -> Response:
    facts = {"status": problem.status, "code": problem.code, "message": message}
    try:
        more = PAGE_SHELL.get(request.app).error_context(request, problem)
        return render_page(request, "error.html", problem.status, request_id=request_id(), **facts, **more)
    except Exception:
        _log.exception("the error page failed")
        return PlainTextResponse(message, problem.status)
