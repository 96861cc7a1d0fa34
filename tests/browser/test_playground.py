"""The playground: a notebook from disk, run, shared with somebody else, and forked."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

from playwright.async_api import FilePayload, expect

from tests.browser.accessibility import assert_accessible_everywhere
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import hold_requests
from tests.browser.signed_in_visitors import admit_signed_in

NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 4,
    "metadata": {"widgets": {"state": "x" * 1_000_000}},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "# Devices\n\nHow many are there?"},
        {
            "cell_type": "code",
            "metadata": {},
            "source": "import tensorflow as tf\nprint(len(tf.config.list_logical_devices('GPU')), 'devices')",
            "outputs": [{"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 25_000_000}}],
            "execution_count": 7,
        },
    ],
}
_IMPORT_S = 90
"""The first file that a server opens makes it import nbformat, which takes seconds of CPU time."""


async def test_a_notebook_is_opened_run_shared_and_forked(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open("/en/playground")
    await expect(page.locator("#share-title")).to_be_visible()
    file: FilePayload = {
        "name": "devices.ipynb",
        "mimeType": "application/json",
        "buffer": json.dumps(NOTEBOOK).encode(),
    }
    await page.locator("#open-file").set_input_files(file)
    await expect(page.locator(".scratch")).to_have_count(2, timeout=_IMPORT_S * 1000)
    await expect(page.get_by_role("heading", name="Devices")).to_be_visible()
    await page.locator("#page-machine .machine-button").click()
    await page.locator("#page-machine .picker label", has_text="8 GPUs").click()
    mine = CellPageObject(page, await page.locator("section.cell").get_attribute("data-cell") or "")
    await mine.run()
    await mine.has_row("8 devices")
    await page.locator("#share-title").fill("Eight devices")
    await page.get_by_role("button", name="Create a link").click()
    link = page.locator("#share-link")
    await expect(link).to_be_focused()
    await assert_accessible_everywhere(page, "the playground")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Copy the link").press("Enter")
    await expect(page.locator("#shares").get_by_role("button", name="Link copied.")).to_be_focused()
    await expect(page.locator("#shares").get_by_role("button", name="Copy the link")).to_be_focused()
    assert await page.evaluate("navigator.clipboard.readText()") == await link.input_value()

    bob = await hall.admit()
    there = await bob.open(urlsplit(await link.input_value()).path)
    await expect(there.get_by_role("heading", level=1)).to_have_text("Eight devices")
    theirs = CellPageObject(there, mine.name)
    await theirs.run()
    await theirs.has_row("8 devices")
    await assert_accessible_everywhere(there, "a shared playground")
    await there.get_by_role("button", name="Copy to my playground").click()

    await expect(there.locator(".scratch")).to_have_count(3)
    assert await CellPageObject(there, mine.name).root.count() == 0
    await page.get_by_role("button", name="Revoke").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".share-list")).to_have_count(0)
    await expect(page.locator("#shares-title")).to_be_focused()


async def test_what_is_done_before_the_script_has_loaded_is_done_then(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.page()
    script = await hold_requests(page, "**/chunks/playground-*")
    await page.goto(ada.site.url("/en/playground"))
    await expect(page.locator("#share-title")).to_be_visible()
    file: FilePayload = {"name": "hello.py", "mimeType": "text/x-python", "buffer": b"print('hello')"}
    await page.locator("#open-file").set_input_files(file)
    script.set()
    await expect(page.locator("section.cell")).to_contain_text("print('hello')", timeout=_IMPORT_S * 1000)

    script = await hold_requests(page, "**/chunks/playground-*")
    await page.reload()
    await page.locator("#page-machine .machine-button").click()
    await page.locator("#page-machine .picker label", has_text="8 GPUs").click()
    await page.locator("#share-title").fill("Eight devices")
    await page.get_by_role("button", name="Create a link").click()
    script.set()
    link = page.locator("#share-link")
    await expect(link).to_be_focused()
    there = await (await hall.admit()).open(urlsplit(await link.input_value()).path)
    await expect(there.locator("section.cell").first).to_contain_text("8 GPUs")


async def test_a_data_file_that_is_dropped_on_the_page_is_there_for_the_code(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    script = await hold_requests(page, "**/chunks/playground-*")
    await page.goto(visitor.site.url("/en/playground"))
    dropped = await page.evaluate_handle(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["rooms,price\\n3,100\\n"], "prices.csv", {type: "text/csv"}));
            return data;
        }"""
    )
    await page.locator("h1").dispatch_event("drop", {"dataTransfer": dropped})
    script.set()
    await expect(page.locator(".scratch")).to_have_count(1, timeout=_IMPORT_S * 1000)
    cell = CellPageObject(page, await page.locator("section.cell").get_attribute("data-cell") or "")
    await expect(cell.root.locator(".scratch-title")).to_have_value("prices.csv")

    await cell.run()

    await cell.has_row("Writing prices.csv")
    await cell.write("%env TF_USE_LEGACY_KERAS=1")
    await cell.run()
    await cell.root.get_by_role("button", name="Choose it in the menu of this cell").press("Enter")
    keras = cell.root.get_by_role("radio", name="Keras 2")
    await expect(keras).to_be_focused()
    await keras.press("Space")
    await expect(cell.root.locator(".machine-button")).to_contain_text("Keras 2")


async def test_the_first_new_cell_of_a_file_is_in_view_and_said(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open("/en/playground")
    files: list[FilePayload] = [
        {"name": f"{name}.py", "mimeType": "text/x-python", "buffer": "\n".join([f"x = {name!r}"] * 60).encode()}
        for name in ("a", "b")
    ]
    field = page.locator("#open-file")
    come = await hold_requests(page, "**/playground/open")
    await field.set_input_files(files[0])
    await expect(field).to_be_disabled()
    come.set()
    await expect(page.locator(".scratch")).to_have_count(1, timeout=_IMPORT_S * 1000)

    await field.set_input_files(files[1])

    await expect(page.locator(".scratch")).to_have_count(2, timeout=_IMPORT_S * 1000)
    await expect(page.locator("#announcements")).to_contain_text("1 cell added.")
    await expect(page.locator(".scratch").nth(1).locator(".cell-top")).to_be_in_viewport(ratio=1)
    await expect(field).to_be_enabled()


async def test_the_files_before_one_that_cannot_be_opened_are_shown_with_the_reason(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated += ["422"]
    page = await visitor.open("/en/playground")
    good: FilePayload = {"name": "a.py", "mimeType": "text/x-python", "buffer": b"x = 1"}
    bad: FilePayload = {"name": "b.ipynb", "mimeType": "application/json", "buffer": b"{}"}

    await page.locator("#open-file").set_input_files([good, bad])

    await expect(page.locator(".scratch")).to_have_count(1, timeout=_IMPORT_S * 1000)
    await expect(page.locator("#open-trouble")).to_have_text(re.compile("b.ipynb: This is not a Jupyter notebook"))
