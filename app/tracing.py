"""Traces by OpenTelemetry, from a click to the kernel, if the operator names a collector.

FastAPI's and SQLAlchemy's own instrumentation makes the spans of requests and statements. The supervisor has no
network: it gets the context of a trace with a run, reports its times with the run's last event, and the web process
that stores the event makes the spans. What may leave the site is on a list (``_ATTRIBUTES``): no address, path, query,
statement, message, code or ID.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine

from app.version import lockstep_version

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NOT_TRACED = "/healthz,/readyz,/static/"
_SHUTDOWN_S = 2.0
"""How long the last spans may take to be sent."""
_ATTRIBUTES = frozenset(
    (
        *("http.method", "http.request.method", "http.route", "http.status_code", "http.response.status_code"),
        *("http.scheme", "url.scheme", "db.system", "db.system.name", "error.type", "lockstep.outcome"),
    )
)

_log = structlog.get_logger("tracing")


class Tracing:
    """The spans of this process, on their way to the collector."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("lockstep", lockstep_version())

    def instrument(self, app: FastAPI) -> None:
        """Make a span of each request. Called before the application serves any."""
        from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

        FastAPIInstrumentor.instrument_app(
            app, tracer_provider=self._provider, excluded_urls=_NOT_TRACED, exclude_spans=["receive", "send"]
        )

    def instrument_engine(self, engine: AsyncEngine) -> None:
        """Make a span of each statement."""
        from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

        # The package says that it has not been tried with SQLAlchemy 2.1. Our tests do that.
        options = {"engine": engine.sync_engine, "tracer_provider": self._provider, "skip_dep_check": True}
        SQLAlchemyInstrumentor().instrument(**options)

    def record_span(
        self, name: str, begin_s: float, end_s: float, *, parent: str, attributes: Mapping[str, str] | None = None
    ) -> str:
        """Make a span of something that has happened elsewhere, in seconds since 1970; returns its context."""
        from opentelemetry.trace.propagation import tracecontext

        context = tracecontext.TraceContextTextMapPropagator().extract({"traceparent": parent})
        span = self._tracer.start_span(name, context, start_time=int(begin_s * 1e9), attributes=attributes)
        span.end(int(max(begin_s, end_s) * 1e9))
        return _traceparent(span)

    async def close(self) -> None:
        """Send the spans that are left, but do not wait long for a collector that is away."""
        from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

        SQLAlchemyInstrumentor().uninstrument()
        ending = threading.Thread(target=self._provider.shutdown, name="tracing-shutdown", daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, _SHUTDOWN_S)


_active: Tracing | None = None


def start_tracing(app: FastAPI) -> Tracing | None:
    """Trace the application if the environment names a collector; None if it does not."""
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracing = Tracing(
            provider := TracerProvider(
                resource=Resource({"service.version": lockstep_version()}).merge(Resource.create(_service_name())),
                shutdown_on_exit=False,
            )
        )
        tracing.instrument(app)
    except ImportError as e:
        _log.warning("nothing is traced: the packages of lockstep[otel] are not installed", reason=str(e))
        return None
    provider.add_span_processor(BatchSpanProcessor(_only_what_may_leave(OTLPSpanExporter())))
    return tracing


def activate(tracing: Tracing | None) -> None:
    """Make ``current_context`` and ``active_tracing`` work."""
    global _active
    _active = tracing


def active_tracing() -> Tracing | None:
    """The tracing of this process, if it is on."""
    return _active


def current_context() -> str:
    """The context of the current span as a ``traceparent`` of W3C; empty if nothing is traced."""
    if _active is None:
        return ""
    from opentelemetry import trace

    return _traceparent(trace.get_current_span())


def _traceparent(span: Any) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}" if context.is_valid else ""


def _service_name() -> dict[str, Any]:
    return {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "lockstep"}


def _only_what_may_leave(exporter: SpanExporter) -> SpanExporter:
    """An exporter that takes everything from spans that is not on our list."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanKind, Status

    def cleaned(span: ReadableSpan) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes={name: value for name, value in (span.attributes or {}).items() if name in _ATTRIBUTES},
            kind=span.kind,
            status=Status(span.status.status_code),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    class Cleaning(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            # Statements of background jobs have no request around them, and there are many.
            wanted = [span for span in spans if span.parent is not None or span.kind != SpanKind.CLIENT]
            return exporter.export([cleaned(span) for span in wanted])

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return exporter.force_flush(timeout_millis)

    return Cleaning()
