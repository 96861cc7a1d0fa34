"""``lockstep lesson preview``: one browser on this machine is the author's, and nothing of it stays."""

from __future__ import annotations

import asyncio
import re
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.settings import Settings
from tests.factories.cli_process import finish, lockstep, start
from tests.factories.course import LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.sse_client import live_stream

_PATIENCE_S = 120.0
"""For a start on a busy machine. A process that ends is noticed at once."""
PAGE = f"/en/courses/{LESSON}"
OF_THE_REAL_SITE = {
    "public_url": "https://learn.example.org",
    "staff_second_factor": "1",
    "metrics_address": "127.0.0.1:1",
    "database_url": "postgresql+asyncpg://nobody@127.0.0.1:1/nothing",
}
"""Settings that do not reach the preview: with one of them it would not start, or show its author nothing."""


def change(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


@pytest.fixture
def draft(settings: Settings) -> Path:
    """The file of a lesson that only instructors see."""
    file = settings.lessons_dir / LESSON / "lesson.md"
    change(file, "status: published", "status: draft")
    return file


@pytest.fixture
def options(settings: Settings, supervisor: ScriptedSupervisor, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "temporary").mkdir()
    return {"data_dir": settings.data_dir, "lessons_dir": tmp_path, "runner_socket": supervisor.socket}


@asynccontextmanager
async def previewed(target: str, **settings: Any) -> AsyncIterator[tuple[Process, httpx.AsyncClient, httpx.URL]]:
    """The command, a browser that has opened nothing, and the link."""
    process = await start("lesson", "preview", target, "--port", "0", **settings)
    try:
        link = httpx.URL(await asyncio.wait_for(_link(process), _PATIENCE_S))
        assert link.host == "localhost"
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{link.port}", timeout=30) as client:
            client.headers["host"] = f"localhost:{link.port}"
            yield process, client, link
    finally:
        if process.returncode is None:
            process.terminate()
            await finish(process)


async def _link(process: Process) -> str:
    assert process.stderr is not None
    said = ""
    while line := (await process.stderr.readline()).decode():
        said += line
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise AssertionError(said)


async def test_the_link_shows_the_draft_and_the_settings_of_the_real_site_do_not_matter(
    draft: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    async with previewed(str(draft.parent), **options, **OF_THE_REAL_SITE) as (process, client, link):
        for path in (PAGE, "/preview", "/preview?key=", f"/preview?key={'a' * 43}", "/preview?key=%ff"):
            assert (await client.get(path)).status_code == 404, path
        assert (await client.get("/lesson-changes", headers={"accept": "text/event-stream"})).status_code == 401
        evil = {"host": "evil.test"}
        assert (await client.get(PAGE, headers=evil)).status_code == 400
        assert (await client.post(link.raw_path.decode())).status_code in (403, 404, 405)
        assert not client.cookies

        opened = await client.get(link.raw_path.decode())
        assert (opened.status_code, opened.headers["location"]) == (303, PAGE)
        assert opened.headers["cache-control"] == "no-store"
        assert "HttpOnly" in opened.headers["set-cookie"]
        browser = {"cookie": opened.headers["set-cookie"].partition(";")[0]}
        client.cookies.clear()
        assert "Some prose." in (await client.get(PAGE, headers=browser)).text
        client.cookies.clear()
        assert (await client.get(PAGE)).status_code == 404

        stream = browser | {"accept": "text/event-stream"}
        async with live_stream(client, "/lesson-changes", headers=stream) as frames:
            await anext(frames)
            change(draft, "Some prose.", "Better prose.")
            async with asyncio.timeout(_PATIENCE_S):
                assert (await anext(frames)).data["changed"] == [LESSON]
        assert "Better prose." in (await client.get(PAGE, headers=browser)).text
        process.send_signal(signal.SIGINT)
        ended = await finish(process, within_s=_PATIENCE_S)
    assert ended.status == 0
    assert "Traceback" not in ended.err
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["lockstep.db"]


async def test_what_it_cannot_show_is_said_at_once(options: dict[str, Any]) -> None:
    ended = await lockstep("lesson", "preview", "no-such-lesson", **options)

    assert (ended.status, ended.out) == (2, "")
    assert "There is no lesson 'no-such-lesson' in" in ended.err
