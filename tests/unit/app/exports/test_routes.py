"""The notebook over HTTP, from the lesson's file and from the database."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import httpx
import nbformat
import pytest
from fastapi import FastAPI

from app.settings import Settings
from app.web.dependencies import SETTINGS
from tests.factories.browser_client import press_run
from tests.factories.lesson_source import CELL, write_lesson
from tests.factories.scripted_supervisor import ScriptedSupervisor

ADDRESS = "/en/courses/small/first.ipynb"


async def _notebook(client: httpx.AsyncClient, what: str = "original") -> nbformat.NotebookNode:
    response = await client.get(ADDRESS, params={"with": what})
    assert response.status_code == 200, response.text
    made = nbformat.reads(response.text, as_version=4)
    nbformat.validate(made)
    return made


async def test_it_is_saved_under_the_lessons_name(client: httpx.AsyncClient) -> None:
    response = await client.get(ADDRESS)

    assert response.headers["content-disposition"] == 'attachment; filename="first.ipynb"'
    assert response.headers["content-type"] == "application/x-ipynb+json"
    made = nbformat.reads(response.text, as_version=4)
    assert [cell.source for cell in made.cells[3:] if cell.cell_type == "code"] == ['print("hello")', 'print("alone")']
    assert made.metadata.lockstep.url == "http://test/en/courses/small/first"


async def test_a_visitors_latest_runs_come_with_code_and_outputs(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for code in ("print('old')", "print('new')"):
        run = await press_run(client, code)
        handed = await supervisor.run(run["id"])
        await supervisor.say(handed, f"{code[7:10]}\n")
        await supervisor.finish(handed)
        await _finished(client, run["id"])

    hello = {cell.id: cell for cell in (await _notebook(client, "mine")).cells}["cell-hello"]
    alone = {cell.id: cell for cell in (await _notebook(client, "mine")).cells}["cell-alone"]
    assert (hello.source, hello.outputs[0].text) == ("print('new')", "new\n")
    assert (alone.source, alone.outputs) == ('print("alone")', [])

    for other in (await _notebook(client), await _notebook(stranger, "mine")):
        cell = {cell.id: cell for cell in other.cells}["cell-hello"]
        assert (cell.source, cell.outputs) == ('print("hello")', [])


async def test_own_cells_come_after_the_cell_that_they_follow_with_their_output(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    page = {"lesson": "small/first"}
    added = await client.post("/en/scratch-cells", params=page, json={"after": "hello", "source": "x", "title": "Try"})
    await client.post("/en/scratch-cells", params=page, json={"after": "alone", "source": "changed"})
    name = added.text.split('data-scratch-name="')[1][:20]
    run = await press_run(client, "x", name)
    handed = await supervisor.run(run["id"])
    await supervisor.say(handed, "seen\n")
    await supervisor.finish(handed)
    await _finished(client, run["id"])

    mine, original = await _notebook(client, "mine"), await _notebook(client)

    code = [cell for cell in mine.cells if cell.cell_type == "code" and not cell.id.startswith("lockstep")]
    assert [cell.source.split("\n")[-1] for cell in code] == ['print("hello")', "x", 'print("alone")', "changed"]
    assert code[1].outputs[0].text == "seen\n"
    assert (code[1].metadata.lockstep.scratch, code[1].metadata.lockstep.title) == (True, "Try")
    assert name not in str(original)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/en/courses/small/none.ipynb", 404), ("/en/courses/none/first.ipynb", 404), (f"{ADDRESS}?with=all", 422)],
)
async def test_what_does_not_exist_is_refused(client: httpx.AsyncClient, path: str, status: int) -> None:
    assert (await client.get(path)).status_code == status


async def _finished(client: httpx.AsyncClient, run: str) -> None:
    async with asyncio.timeout(10):
        while (await client.get(f"/runs/{run}")).json()["state"] != "finished":  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("form", "name", "kind", "says"),
    [
        ("html", "first.html", "text/html", "<!DOCTYPE html>"),
        ("py", "first.py", "text/x-python", 'print("hello")'),
        ("markdown", "first.md", "text/markdown", "# The first lesson"),
    ],
)
async def test_it_comes_in_other_formats_as_a_file(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, form: str, name: str, kind: str, says: str
) -> None:
    run = await press_run(client, "print('new')")
    await supervisor.finish(await supervisor.run(run["id"]))
    await _finished(client, run["id"])
    address = ADDRESS.replace("ipynb", form)
    original, mine = await client.get(address), await client.get(address, params={"with": "mine"})

    assert original.status_code == mine.status_code == 200
    assert original.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert original.headers["content-type"] == f"{kind}; charset=utf-8"
    assert original.headers["x-content-type-options"] == "nosniff"
    assert says in original.text
    assert "new" not in original.text.partition("Some prose.")[2]
    assert "new" in mine.text.partition("Some prose.")[2]
    assert mine.headers["cache-control"] == "private, no-store"


async def test_a_visitors_edits_that_were_not_run_are_in_the_file_and_nowhere_else(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client, "print('ran')")
    await supervisor.finish(await supervisor.run(run["id"]))
    await _finished(client, run["id"])
    edits = {"edits": json.dumps({"alone": "print('edited')"})}

    answer = await client.post(ADDRESS, data=edits)
    theirs = await stranger.post(ADDRESS, data=edits | {"edits": "{}"})

    assert answer.headers["content-disposition"] == 'attachment; filename="first.ipynb"'
    assert answer.headers["cache-control"] == "private, no-store"
    cells = {cell.id: cell.source for cell in nbformat.reads(answer.text, as_version=4).cells}
    assert (cells["cell-hello"], cells["cell-alone"].split("\n")[-1]) == ("print('ran')", "print('edited')")
    for other in (theirs.text, (await client.get(ADDRESS, params={"with": "mine"})).text):
        assert "edited" not in other
    assert "ran" not in theirs.text.partition("Some prose.")[2]


@pytest.mark.parametrize("body", [b"", b"edits=%5B%5D", b"edits=" + b"x" * 300_000])
async def test_edits_that_are_none_or_too_many_are_refused(client: httpx.AsyncClient, body: bytes) -> None:
    refused = await client.post(ADDRESS, content=body, headers={"content-type": "application/x-www-form-urlencoded"})

    assert refused.status_code == (413 if len(body) > 100_000 else 422)


async def test_another_site_cannot_make_a_browser_download_work(client: httpx.AsyncClient) -> None:
    refused = await client.post(ADDRESS, data={"edits": "{}"}, headers={"sec-fetch-site": "cross-site"})

    assert refused.status_code == 403


async def test_the_source_of_a_lesson_keeps_its_address(client: httpx.AsyncClient) -> None:
    assert (await client.get(ADDRESS.replace("ipynb", "md"))).text.startswith("---\n")


async def test_outputs_too_large_to_convert_are_refused_with_a_sentence(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.exports.files.MAX_CONVERTED_BYTES", 100)

    refused = await client.get(ADDRESS.replace("ipynb", "html"))
    assert refused.status_code == 413
    assert "Download the notebook instead." in refused.text
    assert (await client.get(ADDRESS)).status_code == 200


async def test_more_output_than_a_file_may_hold_is_refused_before_it_is_read(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await press_run(client, "print('new')")
    await supervisor.finish(await supervisor.run(run["id"]))
    await _finished(client, run["id"])
    monkeypatch.setattr("app.exports.latest_runs.MAX_OUTPUT_BYTES", 100)

    refused = await client.get(ADDRESS, params={"with": "mine"})
    assert refused.status_code == 413
    assert "download the lesson without your outputs" in refused.text
    assert (await client.get(ADDRESS)).status_code == 200


async def test_twenty_megabytes_of_pictures_are_a_notebook_and_no_page(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client, "plot()")
    handed = await supervisor.run(run["id"])
    for _ in range(20):
        await supervisor.emit(handed, kind="display", data={"image/png": "A" * 1_000_000})
    await supervisor.finish(handed)
    await _finished(client, run["id"])

    tracemalloc.start()
    before = time.process_time()
    try:
        notebook = await client.get(ADDRESS, params={"with": "mine"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert notebook.status_code == 200
    assert len(notebook.content) > 20_000_000
    assert peak < 8 * len(notebook.content)
    assert time.process_time() - before < 10
    page = await client.get(ADDRESS.replace("ipynb", "html"), params={"with": "mine"})
    assert page.status_code == 413
    assert "Your outputs are too large for this format. Download the notebook instead." in page.text


async def test_nbconvert_is_not_imported_before_somebody_needs_it() -> None:
    code = "import sys, app.main; print('nbconvert' in sys.modules)"
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert ran.stdout == "False\n"


async def test_slides_and_the_archive_of_a_course_are_made_once_for_each_content(
    app: FastAPI, client: httpx.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    slides = await client.get(ADDRESS.replace("ipynb", "slides"))
    archive = await client.get("/en/courses/small/lessons.ipynb.zip")

    assert slides.headers["content-disposition"] == 'attachment; filename="first-slides.html"'
    assert '<section class="slide">' in slides.text
    assert archive.headers["content-disposition"] == 'attachment; filename="small.zip"'
    with zipfile.ZipFile(io.BytesIO(archive.content)) as files:
        first, *_ = files.namelist()
        assert first == "small/first.ipynb"
        assert nbformat.reads(files.read(first).decode(), as_version=4).metadata.lockstep.title == "The first lesson"

    with monkeypatch.context() as without:
        without.setattr("app.exports.routes.lesson_file", None)
        assert (await client.get("/en/courses/small/lessons.ipynb.zip")).content == archive.content
        assert (await client.get(ADDRESS.replace("ipynb", "slides"))).content == slides.content
    write_lesson(settings.lessons_dir / "small" / "first", f"Other words.\n\n{CELL}")
    app.state.catalog.reload()
    assert "Other words." in (await client.get(ADDRESS.replace("ipynb", "slides"))).text
    assert (await client.get("/en/courses/small/lessons.ipynb.zip")).content != archive.content


@pytest.mark.parametrize("path", ["/en/courses/small/first.pdf", "/en/courses/small/lessons.pdf.zip"])
async def test_there_is_no_pdf_without_a_browser(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404
    assert "first.pdf" not in (await client.get("/en/courses/small/first")).text


async def test_other_downloads_do_not_wait_for_a_pdf(app: FastAPI, client: httpx.AsyncClient, tmp_path: Path) -> None:
    browser, gate = tmp_path / "browser", tmp_path / "gate"
    os.mkfifo(gate)
    write = 'for one; do case $one in --print-to-pdf=*) echo %PDF- > "${one#*=}";; esac; done'
    browser.write_text(f"#!/bin/sh\nread _ < {gate}\n{write}\n")
    browser.chmod(0o755)
    SETTINGS.set(app, SETTINGS.get(app).model_copy(update={"pdf_browser": browser}))
    printing = asyncio.create_task(client.get("/en/courses/small/first.pdf"))
    with await asyncio.to_thread(gate.open, "w") as opened:  # the browser runs
        assert (await client.get(ADDRESS.replace("ipynb", "html"))).status_code == 200
        assert (await client.get("/en/courses/small/lessons.py.zip")).status_code == 200
        assert not printing.done()
        opened.write("go\n")
    assert (await printing).content == b"%PDF-\n"
