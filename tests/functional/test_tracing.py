"""Traces from a click to the kernel, as a collector on this machine gets them, and nothing that anyone typed."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client, press_run
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import parse_events

SECRET = "s3cret"


class Collector:
    """What a collector has received."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        resources = [resource for request in requests for resource in request.resource_spans]
        return [span for resource in resources for scope in resource.scope_spans for span in scope.spans]

    def one(self, name: str) -> Any:
        (span,) = [span for span in self.spans() if span.name == name]
        return span


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_click_on_run_is_one_trace_through_the_queue_to_the_first_output(
    settings: Settings, supervisor: ScriptedSupervisor, collector: Collector
) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as browser:
        run = await press_run(browser, f"print('{SECRET}')")
        scripted = await supervisor.run(run["id"])
        times: dict[str, Any] = {"accepted_at": 1_000.0, "admitted_ms": 100, "started_ms": 250}
        times |= {"context": scripted.request.trace_context}
        await supervisor.emit(scripted, kind="started")
        await supervisor.emit(
            scripted, kind="finished", outcome="ok", at_ms=900, duration_ms=650, first_output_ms=400, trace=times
        )
        events = parse_events((await browser.get(run["urls"]["stream"])).text)

    click, whole = collector.one("POST /runs"), collector.one("run")
    assert scripted.request.trace_context.startswith(f"00-{click.trace_id.hex()}-{click.span_id.hex()}-")
    assert (whole.trace_id, whole.parent_span_id) == (click.trace_id, click.span_id)
    parts = {name: collector.one(name) for name in ("queue", "start", "execute", "first output")}
    assert {part.parent_span_id for part in parts.values()} == {whole.span_id}
    begin = 1_000_000_000_000
    assert {
        name: ((part.start_time_unix_nano - begin) // 1_000_000, (part.end_time_unix_nano - begin) // 1_000_000)
        for name, part in parts.items()
    } == {"queue": (0, 100), "start": (100, 250), "execute": (250, 900), "first output": (250, 400)}
    statements = [span for span in collector.spans() if span.name.startswith(("SELECT", "INSERT"))]
    assert any(span.parent_span_id == click.span_id for span in statements)
    assert events[-1].event == "finished"
    assert "trace" not in events[-1].data


async def test_nothing_that_anyone_typed_is_in_a_span(
    settings: Settings, supervisor: ScriptedSupervisor, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(settings)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        account = await store_account(app.state.db, email=f"{SECRET}@example.org", name=SECRET)
        browser = await stack.enter_async_context(await signed_in_browser(app, account))
        for path in (f"/en/email-link/{SECRET}", f"/{SECRET}/x", f"/en/courses/{SECRET}/first", f"/en/?q={SECRET}"):
            await browser.get(path, headers={"user-agent": SECRET, "x-forwarded-for": SECRET})
        await browser.post("/en/sign-in", data={"email": f"{SECRET}@example.org", "password": SECRET})
        await press_run(browser, f"print('{SECRET}')")
        monkeypatch.setattr(app.state.dispatcher, "dispatch", _fail)
        await browser.post("/runs", json={"lesson": "small/first", "cell": "hello", "code": SECRET})
        cookies = list(browser.cookies.values())

    names = {span.name for span in collector.spans()}
    assert {"GET /{lang}/email-link/{token}", "POST /runs"} <= {name.replace(":lang", "") for name in names}
    sent = b"".join(collector.bodies)
    private = [SECRET, account.id, account.learner_id, "192.0.2.1", *cookies]
    assert [word for word in private if word.encode() in sent] == []


async def _fail(*_: object, **__: object) -> None:
    raise ValueError(SECRET)


async def test_without_a_collector_nothing_is_traced(settings: Settings, supervisor: ScriptedSupervisor) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as browser:
        run = await press_run(browser)

        assert (await supervisor.run(run["id"])).request.trace_context == ""
    assert not hasattr(app, "_is_instrumented_by_opentelemetry")


async def test_a_collector_that_is_away_delays_nothing_for_long(
    settings: Settings, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(logging.getLogger("opentelemetry"), "disabled", True)
    app = create_app(settings)
    async with asyncio.timeout(30), app.router.lifespan_context(app), browser_client(app) as browser:
        assert (await browser.get("/en/")).status_code == 200
