"""What Prometheus reads: on a port of its own, about the site, and nothing about a person."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.main import create_app
from app.settings import Settings
from runners.wire.protocol import Health
from tests.factories.browser_client import browser_client, press_run
from tests.factories.cli_process import finish, lockstep, start
from tests.factories.http_server import free_port, serving
from tests.factories.process_tree import web_processes
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import live_stream

LESSON_PAGE = "/{lang}/courses/{course}/{slug}"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def measured(settings: Settings) -> Settings:
    """Settings with an address for metrics."""
    return settings.model_copy(update={"metrics_address": f"127.0.0.1:{free_port()}"})


async def scrape(settings: Settings) -> tuple[str, Samples]:
    async with httpx.AsyncClient() as prometheus:
        response = await prometheus.get(f"http://{settings.metrics_address}/metrics", timeout=20)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(response.text)
    return response.text, {(s.name, frozenset(s.labels.items())): s.value for f in families for s in f.samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


async def test_prometheus_reads_what_happens_on_the_site(measured: Settings, supervisor: ScriptedSupervisor) -> None:
    supervisor.health = Health(
        status="ready", sessions=3, max_sessions=4, queued=2, warm_kernels=1, longest_wait_s=2.5, memory_kills=7
    )
    async with serving(create_app(measured)) as client:
        _, before = await scrape(measured)
        run = await press_run(client)
        scripted = await supervisor.run(run["id"])
        async with live_stream(client, run["urls"]["stream"]) as frames:
            await supervisor.emit(scripted, kind="started")
            async with asyncio.timeout(20):
                while (await anext(frames)).event != "started":
                    pass
                _, during = await scrape(measured)
                await supervisor.finish(scripted, "memory", first_output_ms=20, duration_ms=1500)
                while (await anext(frames)).event != "finished":
                    pass
        _, after = await scrape(measured)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("lockstep_runs_total", outcome="memory") == 1
    assert grown("lockstep_run_wait_seconds_count") == 1
    assert grown("lockstep_run_first_output_seconds_sum") == pytest.approx(0.02)
    assert grown("lockstep_run_seconds_sum") == pytest.approx(1.5)
    assert grown("lockstep_event_lag_seconds_count") >= 1
    assert 0 < grown("lockstep_event_lag_seconds_sum") < 15
    assert grown("lockstep_http_requests_total", method="POST", route="/runs", status="202") == 1
    assert grown("lockstep_http_response_seconds_count", method="GET", route="/runs/{run_id}/stream") == 1
    assert value(during, "lockstep_open_streams") - value(before, "lockstep_open_streams") == 1
    expected = {"sessions": 3, "sessions_limit": 4, "queued_sessions": 2, "warm_kernels": 1, "queue_wait_seconds": 2.5}
    expected |= {"memory_kills_total": 7, "runner_up": 1, "runner_runs_code": 1, "database_up": 1}
    assert {name: value(after, f"lockstep_{name}") for name in expected} == expected
    assert value(after, "lockstep_database_connections_limit") == measured.database_connections
    assert value(after, "lockstep_database_size_bytes") > 100_000
    assert value(after, "lockstep_outbox_emails", state="waiting") == 0


async def test_no_label_holds_what_a_request_says(measured: Settings, supervisor: ScriptedSupervisor) -> None:
    async with serving(create_app(measured)) as client:
        for path in ("/en/email-link/s3cret-token", "/nowhere/s3cret", "/static/s3cret.js", "/en/?q=s3cret"):
            await client.get(path)
        await client.request("S3CRET", "/en/")
        await client.post("/en/sign-in", data={"email": "s3cret@example.org", "password": "s3cret"})
        for _ in range(2):  # the second is from the page cache
            await client.get("/en/courses/small/first")
        text, samples = await scrape(measured)

    assert "s3cret" not in text.lower()
    assert value(samples, "lockstep_http_requests_total", method="GET", route=LESSON_PAGE, status="200") >= 2
    assert value(samples, "lockstep_http_requests_total", method="GET", route="unmatched", status="404") >= 1
    assert value(samples, "lockstep_http_requests_total", method="GET", route="/static/{path}", status="404") >= 1


async def test_the_public_port_has_no_metrics(measured: Settings, supervisor: ScriptedSupervisor) -> None:
    async with serving(create_app(measured)) as client:
        assert (await client.get("/metrics")).status_code == 404
        async with httpx.AsyncClient(base_url=f"http://{measured.metrics_address}") as prometheus:
            statuses = {(await prometheus.get(path)).status_code for path in ("/", "/en/", "/healthz", "/runs")}
            assert statuses == {404}
            assert (await prometheus.post("/metrics")).status_code == 405


async def test_a_part_that_is_away_has_no_figures(measured: Settings, supervisor: ScriptedSupervisor) -> None:
    broken = measured.model_copy(update={"database_url": "sqlite+aiosqlite:////nowhere/x.db"})
    app = create_app(broken)
    async with app.router.lifespan_context(app), browser_client(app):
        await supervisor.stop()
        text, samples = await scrape(measured)

    assert value(samples, "lockstep_runner_up") == value(samples, "lockstep_database_up") == 0
    assert "\nlockstep_sessions " not in text
    assert "\nlockstep_outbox_oldest_seconds " not in text
    assert "\nlockstep_build_info{" in text


@asynccontextmanager
async def _two_processes(settings: Settings) -> AsyncIterator[tuple[psutil.Process, httpx.AsyncClient]]:
    port = free_port()
    process = await start(
        *("serve", "--port", str(port), "--workers", "2"),
        data_dir=settings.data_dir,
        lessons_dir=settings.lessons_dir,
        runner_socket=settings.runner_socket,
        metrics_address=settings.metrics_address,
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while True:
                try:
                    await client.get("/healthz")
                    break
                except httpx.TransportError:
                    assert process.returncode is None
                    await asyncio.sleep(0.05)
            yield psutil.Process(process.pid), client
    finally:
        process.terminate()
        await finish(process)


@pytest.mark.long
async def test_the_processes_of_a_server_add_up(measured: Settings, supervisor: ScriptedSupervisor) -> None:
    async def limit() -> float:
        return value((await scrape(measured))[1], "lockstep_database_connections_limit")

    async with asyncio.timeout(120), _two_processes(measured) as (server, client):
        both = 2 * measured.database_connections
        while await limit() != both:  # noqa: ASYNC110 - the second process says so only here
            await asyncio.sleep(0.05)
        for _ in range(5):
            await client.get("/en/courses/small/first")
        counts = {await _pages(measured) for _ in range(5)}
        killed = min(p.pid for p in web_processes(server, all_below=True))
        os.kill(killed, signal.SIGKILL)
        with suppress(psutil.NoSuchProcess):
            psutil.Process(killed).wait(20)
        while await limit() != both:  # noqa: ASYNC110 - another process replaces it
            await asyncio.sleep(0.05)
        afterwards = await _pages(measured)

    assert counts == {5.0}
    assert afterwards == 5


async def _pages(settings: Settings) -> float:
    samples = (await scrape(settings))[1]
    return value(samples, "lockstep_http_requests_total", method="GET", route=LESSON_PAGE, status="200")


async def test_an_address_in_use_stops_the_server_with_one_sentence(settings: Settings) -> None:
    port = str(free_port())
    ended = await lockstep(
        *("serve", "--port", port),
        data_dir=settings.data_dir,
        runner_socket=settings.runner_socket,
        metrics_address=f"127.0.0.1:{port}",
    )

    assert ended.status == 1
    assert ended.err == (
        f"Cannot serve metrics on 127.0.0.1:{port}: Address already in use. "
        "Choose another address with LOCKSTEP_METRICS_ADDRESS.\n"
    )
