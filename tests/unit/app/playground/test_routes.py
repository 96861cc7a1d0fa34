"""The playground over HTTP: opening files, shared copies that anyone can run and fork, and who may revoke them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from app.accounts.models import Account
from app.db import now
from app.lessons.model import Lesson
from app.playground import routes, sharing
from app.playground.models import SharedPlayground
from app.playground.pages import OWN_KEY
from app.playground.personal_data import export_shares
from app.runs.models import Run
from app.web.dependencies import DATABASE
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client
from tests.factories.scripted_supervisor import ScriptedSupervisor

HTMX = {"hx-request": "true"}
COPY = re.compile(r"/en/playground/shared/([A-Za-z0-9_-]{22})")


@pytest.fixture
async def ada(app: FastAPI, supervisor: ScriptedSupervisor) -> AsyncIterator[httpx.AsyncClient]:
    async with aclosing(await signed_in_browser(app)) as client:
        yield client


@pytest.fixture
async def stranger(app: FastAPI, supervisor: ScriptedSupervisor) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_client(app) as client:
        yield client


async def open_cells(client: httpx.AsyncClient, *sources: str) -> list[str]:
    """Open a script with these cells; their names."""
    text = "\n".join(f"# %%\n{source}" for source in sources)
    opened = await client.post("/en/playground/open", json={"name": "a.py", "text": text})
    assert opened.status_code == 200, opened.text
    names: list[str] = opened.json()["cells"]
    return names


async def share(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    form = {"title": "Mine", "topology": "tpu:8", "keras": "3"} | fields
    return await client.post("/en/playground/shares", data=form, headers=HTMX)


async def shared_id(client: httpx.AsyncClient) -> str:
    await open_cells(client, "x = 1", "print(x)")
    found = COPY.search((await share(client)).text)
    assert found is not None
    return found[1]


async def own_cells(client: httpx.AsyncClient) -> str:
    return (await client.get("/en/scratch-cells", params={"lesson": OWN_KEY})).text


async def test_the_page_is_the_same_for_everyone_and_says_nothing_of_its_viewer(
    ada: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    await open_cells(ada, "secret = 1")

    assert (await ada.get("/en/playground")).text == (await stranger.get("/en/playground")).text
    assert "secret" in await own_cells(ada)


async def test_own_cells_run_on_the_machine_that_was_chosen(app: FastAPI, stranger: httpx.AsyncClient) -> None:
    (name,) = await open_cells(stranger, "print(1)")
    asked = {"lesson": OWN_KEY, "cell": name, "code": "print(1)"}

    run = await stranger.post("/runs", json=asked | {"topology": "workers:2", "keras": 2})
    refused = await stranger.post("/runs", json=asked | {"topology": "gpu:7"})

    assert (run.status_code, run.json()["topology"], run.json()["keras"]) == (202, "workers:2", 2)
    assert refused.json()["error"]["code"] == "machine_unavailable"
    panel = await stranger.get("/en/session", params={"lesson": OWN_KEY, "topology": "workers:2", "keras": 2})
    assert 'data-topology="workers:2"' in panel.text


async def test_a_file_that_is_no_notebook_is_refused_with_a_sentence(stranger: httpx.AsyncClient) -> None:
    for name, text in (("a.ipynb", "{}"), ("picture.png", "PNG"), ("a.py", "")):
        refused = await stranger.post("/en/playground/open", json={"name": name, "text": text})
        assert refused.status_code == 422
        assert refused.json()["error"]["message"].endswith(".")
    too_large = await stranger.post("/en/playground/open", json={"name": "a.py", "text": "#" * 1_000_000})
    assert too_large.status_code == 413


async def test_a_copy_is_run_and_forked_by_whoever_has_the_link(
    app: FastAPI, ada: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    copy = await shared_id(ada)
    url = f"/en/playground/shared/{copy}"

    page = await stranger.get(url)
    assert (page.status_code, page.headers["x-robots-tag"]) == (200, "noindex")
    assert '<meta name="robots" content="noindex">' in page.text
    assert "canonical" not in page.text
    cell = re.findall(r'data-cell="(scratch-[0-9a-f]{12})"', page.text)[1]
    run = await stranger.post("/runs", json={"lesson": f"~playground/{copy}", "cell": cell, "code": "print(2)"})
    assert (run.status_code, run.json()["topology"]) == (202, "tpu:8")
    forked = await stranger.post(f"{url}/fork")
    assert (forked.status_code, forked.headers["location"]) == (303, "/en/playground")
    theirs = await own_cells(stranger)
    assert theirs.count("data-scratch-name") == 3
    assert "<h3>Mine</h3>" in theirs
    assert cell not in theirs
    async with DATABASE.get(app).session() as session:
        (made,) = await session.scalars(select(Run).where(Run.lesson == f"~playground/{copy}"))
        owner = (await session.scalars(select(Account))).one()
        assert made.learner_id != owner.learner_id


async def test_a_copy_is_rendered_in_the_thread_for_that(
    ada: httpx.AsyncClient, stranger: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered_in = []

    def as_lesson(share: SharedPlayground, language: str) -> Lesson:
        rendered_in.append(threading.current_thread().name)
        return sharing.as_lesson(share, language)

    monkeypatch.setattr(routes, "as_lesson", as_lesson)
    assert (await stranger.get(f"/en/playground/shared/{await shared_id(ada)}")).status_code == 200
    assert rendered_in == ["learners-text_0"]


async def test_a_copy_stays_as_it_was_when_its_owner_changes_the_playground(ada: httpx.AsyncClient) -> None:
    copy = await shared_id(ada)
    before = (await ada.get(f"/en/playground/shared/{copy}")).text

    await open_cells(ada, "y = 2")

    assert (await ada.get(f"/en/playground/shared/{copy}")).text == before


async def test_a_copy_of_a_disabled_account_cannot_be_opened(
    app: FastAPI, ada: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    url = f"/en/playground/shared/{await shared_id(ada)}"
    for disabled_at, expected in ((now(), 404), (None, 200)):
        async with DATABASE.get(app).writing() as session:
            await session.execute(update(Account).values(disabled_at=disabled_at))
        assert (await stranger.get(url)).status_code == expected


async def test_only_its_owner_and_moderators_revoke_a_copy(
    app: FastAPI, ada: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    copy, other = await shared_id(ada), await shared_id(ada)
    url = f"/en/playground/shared/{copy}"
    async with aclosing(await signed_in_browser(app)) as bob:
        assert "<button" not in (await bob.get(f"{url}/owner")).text
        assert (await bob.post(f"{url}/revoke")).status_code == 404
    assert (await stranger.post(f"{url}/revoke")).status_code == 401
    assert (await stranger.get(url)).status_code == 200

    assert "<button" in (await ada.get(f"{url}/owner")).text
    assert (await ada.post(f"{url}/revoke")).status_code == 303
    assert (await ada.post("/en/playground/shared/%00/revoke")).status_code == 404
    async with DATABASE.get(app).writing() as session:
        await session.execute(update(Account).values(disabled_at=now()))
    async with aclosing(await signed_in_browser(app, "instructor")) as instructor:
        assert (await instructor.post(f"/en/playground/shared/{other}/revoke")).status_code == 303

    for gone in (copy, other):
        assert (await stranger.get(f"/en/playground/shared/{gone}")).status_code == 404
        refused = await stranger.post("/runs", json={"lesson": f"~playground/{gone}", "cell": "x", "code": "1"})
        assert refused.json()["error"]["code"] == "shared_playground_not_found"


async def test_sharing_needs_an_account_a_cell_and_room(
    ada: httpx.AsyncClient, stranger: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await share(stranger)).status_code == 401
    empty = await share(ada, title='"><script>')
    assert empty.status_code == 422
    assert "Your playground is empty" in empty.text
    assert "<script" not in empty.text
    await shared_id(ada)
    monkeypatch.setattr(sharing, "MAX_SHARES", 1)
    full = await share(ada)
    assert (full.status_code, "that is the limit" in full.text) == (422, True)
    assert (await share(ada, topology="gpu:7")).status_code == 422


async def test_titles_and_code_of_others_are_only_text(ada: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    attack = "</title><script>alert(1)</script><img src=x onerror=alert(1)>"
    await open_cells(ada, f"x = '{attack}'", f"[markdown]\n# {attack}")
    found = COPY.search((await share(ada, title=attack)).text)
    assert found is not None

    page = (await stranger.get(found[0])).text
    await stranger.post(f"{found[0]}/fork")

    for html in (page, await own_cells(stranger)):
        assert "<script>alert" not in html
        assert "<img src=x" not in html


@pytest.mark.parametrize("copy", ["x", "mine", "A" * 22, "..%2f..", "%00", "é" * 22])
async def test_ids_that_were_never_given_out_lead_nowhere(stranger: httpx.AsyncClient, copy: str) -> None:
    assert (await stranger.get(f"/en/playground/shared/{copy}")).status_code == 404


async def test_an_account_exports_its_copies(app: FastAPI, ada: httpx.AsyncClient) -> None:
    copy = await shared_id(ada)

    async with DATABASE.get(app).session() as session:
        account = (await session.scalars(select(Account))).one()
        rows: list[Any] = [row async for row in export_shares(session, account)]

    assert [(row["id"], [cell["source"] for cell in row["cells"]]) for row in rows] == [(copy, ["x = 1", "print(x)"])]


async def test_the_playground_is_downloaded_with_its_cells(stranger: httpx.AsyncClient) -> None:
    text = {"cell_type": "markdown", "metadata": {}, "source": "# Notes\n\n<b>bold</b><script>alert(1)</script>"}
    code: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "source": "x = 41",
        "outputs": [],
        "execution_count": None,
    }
    file = json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [text, code]})
    await stranger.post("/en/playground/open", json={"name": "a.ipynb", "text": file})

    files = {form: await stranger.get(f"/en/playground.{form}") for form in ("ipynb", "py", "html", "markdown")}

    for form, answer in files.items():
        assert answer.status_code == 200, form
        assert "no-store" in answer.headers["cache-control"]
        assert "41" in answer.text, form
    cells = json.loads(files["ipynb"].text)["cells"]
    assert [cell["cell_type"] for cell in cells[-2:]] == ["markdown", "code"]
    assert "<script>alert" not in files["html"].text
