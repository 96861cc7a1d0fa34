"""The alert rules and the dashboard: in a real Prometheus that reads a real server, and by its own tests of rules."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.main import create_app
from app.settings import Settings
from docs.reference import alerts, metrics
from tests.factories.http_server import free_port, serving
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.unpacked_programs import program

ROOT = Path(__file__).parents[2]
FILES = ROOT / "docs" / "operate" / "prometheus"
RULES = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((FILES / "dashboard.json").read_text())


def expressions() -> Iterator[str]:
    """Every query of the rules and the dashboard."""
    yield from (rule["expr"] for rule in RULES)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"].replace("$__rate_interval", "1m") for target in panel["targets"])


def test_promtool_accepts_the_rules_and_their_tests_pass() -> None:
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        done = subprocess.run([program("promtool"), *command], cwd=FILES, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_explains_every_metric_and_every_alert() -> None:
    page = (ROOT / "docs" / "operate" / "monitoring.md").read_text()

    assert {"<!-- generated: metrics -->", "<!-- generated: alerts -->"} <= set(page.splitlines())
    assert len(re.findall(r"^\| `lockstep_", metrics(), re.MULTILINE)) > 20
    assert [name for rule in RULES if f"| `{(name := rule['alert'])}` | " not in alerts()] == []


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["description"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


async def test_a_server_has_every_metric_of_the_rules_and_the_dashboard(
    settings: Settings, supervisor: ScriptedSupervisor, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{free_port()}"
    async with serving(create_app(settings.model_copy(update={"metrics_address": address}))) as client:
        await client.get("/en/")
        async with httpx.AsyncClient() as http:
            text = (await http.get(f"http://{address}/metrics", timeout=20)).text
        exposed = set()
        for family in text_string_to_metric_families(text):
            exposed |= {f"{family.name}{suffix}" for suffix in _SUFFIXES[family.type]}
            assert f"`{family.name}" in metrics()
        named = {name for query in expressions() for name in re.findall(r"lockstep_\w+", query)}

        assert named - exposed == set()


_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
"""Of the series of a metric, by its type."""


@pytest.mark.long
async def test_a_real_prometheus_reads_a_server_and_evaluates_every_query(
    settings: Settings, supervisor: ScriptedSupervisor, tmp_path: Path
) -> None:
    binary, address, port = program("prometheus"), f"127.0.0.1:{free_port()}", free_port()
    target = {"job_name": "lockstep", "scrape_interval": "1s", "scrape_timeout": "1s"}
    target["static_configs"] = [{"targets": [address]}]  # type: ignore[assignment]
    config = tmp_path / "prometheus.yml"
    config.write_text(json.dumps({"rule_files": [str(FILES / "alerts.yml")], "scrape_configs": [target]}))
    async with serving(create_app(settings.model_copy(update={"metrics_address": address}))) as client:
        await client.get("/en/")
        prometheus = await asyncio.create_subprocess_exec(
            *(binary, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"),
            f"--web.listen-address=127.0.0.1:{port}",
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=20) as api:
                async with asyncio.timeout(60):
                    read = 'lockstep_http_requests_total{route="/{lang}/"}'
                    while not await _ask(api, read):  # noqa: ASYNC110 - Prometheus says so only if asked
                        await asyncio.sleep(0.05)
                (group,) = (await api.get("/rules")).json()["data"]["groups"]
                answers = [(await api.get("/query", params={"query": query})).json() for query in expressions()]
                async with asyncio.timeout(60):  # a scrape that took too long has left no value
                    while not (up := await _ask(api, "lockstep_runner_up")):  # noqa: ASYNC110 - as above
                        await asyncio.sleep(0.05)
        finally:
            prometheus.terminate()
            await prometheus.wait()

    assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in RULES]
    assert [answer for answer in answers if answer["status"] != "success" or answer.get("warnings")] == []
    assert up[0]["value"][1] == "1"


async def _ask(api: httpx.AsyncClient, query: str) -> list[Any]:
    """The result of a query; empty while Prometheus starts."""
    try:
        answer = (await api.get("/query", params={"query": query})).json()
    except (httpx.TransportError, json.JSONDecodeError):
        return []
    found: list[Any] = answer["data"]["result"] if answer["status"] == "success" else []
    return found
