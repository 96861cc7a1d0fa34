"""Reports of errors, as a receiver on this machine gets them: where it happened, and nothing that anyone typed."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from typing import Any

import pytest
import sentry_sdk

from app.main import create_app
from app.runs.dispatcher import RunDispatcher
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor


@pytest.fixture
def received() -> Iterator[tuple[str, Queue[str]]]:
    """The DSN of a receiver, and what it receives."""
    bodies: Queue[str] = Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            bodies.put((gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://public@127.0.0.1:{server.server_port}/1", bodies
    finally:
        sentry_sdk.get_client().close(timeout=5)
        sentry_sdk.get_global_scope().set_client(None)
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_report_says_where_it_happened_and_nothing_that_anyone_typed(
    settings: Settings,
    supervisor: ScriptedSupervisor,
    received: tuple[str, Queue[str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def fail(*arguments: object, **_: object) -> None:
        secret_variable = str(arguments)
        raise ValueError(f"s3cret {secret_variable}")

    monkeypatch.setattr(RunDispatcher, "dispatch", fail)
    dsn, bodies = received
    app = create_app(settings.model_copy(update={"sentry_dsn": type(settings.sentry_dsn)(dsn)}))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        account = await store_account(app.state.db, email="s3cret@example.org", name="s3cret")
        browser = await stack.enter_async_context(await signed_in_browser(app, account))
        run = {"lesson": LESSON, "cell": "hello", "code": "print('s3cret')"}
        response = await browser.post("/runs?s3cret=s3cret", json=run, headers={"user-agent": "s3cret"})
    body = bodies.get(timeout=20)
    event = json.loads(body.splitlines()[2])

    assert response.status_code == 500
    (error,) = event["exception"]["values"]
    assert error["type"] == "ValueError"
    assert error["stacktrace"]["frames"][-1]["function"] == "fail"
    assert any(frame["module"] == "app.runs.routes" for frame in error["stacktrace"]["frames"])
    assert event["tags"] == {"event": "request failed", "request_id": response.headers["x-request-id"]}
    assert event["release"].startswith("lockstep@")
    typed = ["s3cret", "secret_variable", "user-agent", "127.0.0.1", "testserver", "/runs?"]
    assert [word for word in [*typed, *browser.cookies.values()] if word in body.partition("\n")[2]] == []
    assert "s3cret" in capfd.readouterr().err  # the whole error stays in the log


async def test_errors_of_libraries_are_reported_and_refusals_are_not(
    settings: Settings, supervisor: ScriptedSupervisor, received: tuple[str, Queue[str]]
) -> None:
    dsn, bodies = received
    app = create_app(settings.model_copy(update={"sentry_dsn": type(settings.sentry_dsn)(dsn)}))
    async with app.router.lifespan_context(app), await signed_in_browser(app) as browser:
        assert (await browser.get("/en/nowhere")).status_code == 404
        assert (await browser.post("/runs", json={})).status_code == 422
    try:
        raise KeyError("s3cret")
    except KeyError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    event: dict[str, Any] = json.loads(bodies.get(timeout=20).splitlines()[2])

    assert event["exception"]["values"][0]["type"] == "KeyError"
    assert bodies.empty()
