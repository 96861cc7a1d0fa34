"""Reports of unexpected errors to Sentry, or a service that speaks its protocol, if the operator names one.

Every error that the log shows with a traceback is reported: its type, and where in the code it happened. Nothing else
leaves the site, because messages and variables may hold what people typed: no message, variable, request, cookie,
address, account or code of a learner. The request ID leads to the whole error in the log.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import structlog

from app.settings import Settings
from app.version import lockstep_version

_FRAME = frozenset(("filename", "abs_path", "module", "function", "lineno", "in_app"))
_EVENT = frozenset(("event_id", "timestamp", "level", "platform", "release", "environment", "sdk", "tags"))
_TAGS = ("event", "request_id")
"""What is taken from the log entry: our own words, and the ID of the request."""

_log = structlog.get_logger("error_reports")


def start_error_reports(settings: Settings) -> None:
    """Report errors from now on, if there is an address for them."""
    dsn = settings.sentry_dsn.get_secret_value()
    if not dsn:
        return
    try:
        import sentry_sdk
        from sentry_sdk.integrations.atexit import AtexitIntegration
    except ImportError:
        _log.warning("errors are not reported: LOCKSTEP_SENTRY_DSN requires the package sentry-sdk")
        return
    sentry_sdk.init(
        dsn,
        release=f"lockstep@{lockstep_version()}",
        environment=settings.environment,
        before_send=lambda event, _hint: cast(Any, without_content(cast(dict[str, Any], event))),
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[AtexitIntegration(callback=lambda _pending, _timeout: None)],
        include_local_variables=False,
        include_source_context=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        traces_sample_rate=None,
    )


def report_error(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """A processor of structlog: report the exception of a log entry."""
    error = _exception_of(entry.get("exc_info"))
    if error is not None and (sentry := sys.modules.get("sentry_sdk")) is not None and sentry.is_initialized():
        with sentry.new_scope() as scope:
            for name in _TAGS:
                if isinstance(value := entry.get(name), str):
                    scope.set_tag(name, value)
            scope.capture_exception(error)
    return entry


def without_content(event: dict[str, Any]) -> dict[str, Any]:
    """What may leave the site of an event. Pure."""
    kept = {name: value for name, value in event.items() if name in _EVENT}
    errors = event.get("exception", {}).get("values", ())
    return kept | {"exception": {"values": [_without_message(error) for error in errors]}}


def _without_message(error: dict[str, Any]) -> dict[str, Any]:
    frames = (error.get("stacktrace") or {}).get("frames", ())
    where = [{name: value for name, value in frame.items() if name in _FRAME} for frame in frames]
    return {"type": error.get("type"), "module": error.get("module"), "stacktrace": {"frames": where}}


def _exception_of(exc_info: object) -> BaseException | None:
    """The exception in any form that ``exc_info`` of a log entry can have."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if isinstance(exc_info[1], BaseException) else None
    return sys.exc_info()[1] if exc_info else None
