"""The notebook over HTTP, from the lesson's file and from SQL."""

from __future__ import annotations

import asyncio

import httpx
import nbformat
import pytest

from tests.factories.browser import press_run
from tests.factories.supervisor import Supervisor

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
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, supervisor: Supervisor
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
