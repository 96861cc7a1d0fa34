"""Slides and PDFs of shipped lessons, opened: nothing is missing, cut off or empty, and slides are paged through."""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile
from html import unescape
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from pypdf import PdfReader

from app.exports.chromium import find_browser
from app.exports.files import ExportFormat, lesson_file
from app.lessons.model import Lesson
from tests.browser.accessibility import assert_accessible_everywhere
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import hold_requests
from tests.browser.polling import wait_until
from tests.factories.shipped_lessons import shipped_catalog

CATALOG = shipped_catalog()
_FLAWS = """() => {
  const wide = [...document.querySelectorAll(".slide")].filter((slide) => slide.scrollWidth > slide.clientWidth + 1);
  const empty = [...document.querySelectorAll(".slide")].filter((slide) => !slide.innerText.trim());
  const blank = [...document.images].filter((image) => !image.complete || !image.naturalWidth);
  const flat = [...document.querySelectorAll("math")].filter((formula) => !formula.getBoundingClientRect().height);
  return {wide: wide.length, empty: empty.length, blank: blank.length, flat: flat.length};
}"""
"""Slides that are wider than the window, or empty; pictures that did not load; formulas that take no room."""


def _lesson(slug: str, language: str) -> Lesson:
    return CATALOG.lesson("distributed-tensorflow", slug, language)


def _file(form: ExportFormat, lesson: Lesson) -> bytes:
    address = f"https://example.org/en/courses/{lesson.key}"
    return lesson_file(form, lesson, address, {}, {}, browser=find_browser(), trusted=True)


def _letters(text: str) -> str:
    """The text without spaces and ligatures."""
    return "".join(unicodedata.normalize("NFKC", text).split())


@pytest.mark.long
@pytest.mark.parametrize(("slug", "language"), [("distribution-strategies", "en"), ("gradient-by-hand", "ko")])
async def test_the_slides_of_a_lesson_are_whole_and_a_key_leads_to_the_next(
    chromium: Browser, tmp_path: Path, slug: str, language: str
) -> None:
    lesson = _lesson(slug, language)
    file = tmp_path / "slides.html"
    file.write_bytes(_file("slides", lesson))
    page = await chromium.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.goto(file.as_uri())

    slides = page.locator(".slide")
    assert await slides.count() > 5
    assert lesson.title in await slides.first.inner_text()
    assert await page.locator("img, svg").count() > 0
    assert await page.evaluate(_FLAWS) == {"wide": 0, "empty": 0, "blank": 0, "flat": 0}
    await expect(slides.nth(1).get_by_role("heading").first).not_to_be_in_viewport()
    height = await slides.first.evaluate("(slide) => slide.offsetHeight")
    await page.evaluate("window.pages = 0, void addEventListener('scrollend', () => pages++)")
    for number in range(-(-height // 720)):  # one that is higher than the window scrolls first
        await page.keyboard.press("PageDown")
        await wait_until(page, f"pages > {number}")
    await expect(slides.nth(1).get_by_role("heading").first).to_be_in_viewport()
    await expect(slides.first.get_by_role("heading").first).not_to_be_in_viewport()
    assert complaints == []
    await page.close()


@pytest.mark.long
@pytest.mark.skipif(find_browser() is None, reason="there is no Chromium or Chrome")
@pytest.mark.parametrize(("slug", "language"), [("distribution-strategies", "en"), ("gradient-by-hand", "ko")])
def test_the_pdf_of_a_lesson_is_whole_and_hides_no_answer(slug: str, language: str) -> None:
    lesson = _lesson(slug, language)
    reader = PdfReader(io.BytesIO(_file("pdf", lesson)))

    pages = [_letters(page.extract_text()) for page in reader.pages]
    assert len(pages) > 3
    assert min(map(len, pages[:-1])) > 100, "only the last page may be almost empty"
    text = "".join(pages)
    printed = {_letters(line) for page in reader.pages for line in page.extract_text().splitlines()}
    assert _letters(lesson.title) in text
    for cell in lesson.cells:
        for line in cell.code.splitlines():
            assert _letters(line) in text, f"{cell.name} is cut off: {line}"
            assert len(line) > 80 or _letters(line) in printed | {""}, f"{cell.name} is wrapped: {line}"
        code = _letters(cell.code)
        assert len(cell.code.splitlines()) > 40 or any(code in page for page in pages), f"{cell.name} is torn apart"
    answers = re.findall(r"</summary>\s*<p>([^<]{8,20})", _file("html", lesson).decode())
    assert answers
    assert all(_letters(unescape(answer)) in text for answer in answers), "nobody can open a fold on paper"


async def test_a_bar_shows_that_a_file_is_being_made_and_words_that_it_failed(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated += ["503"]
    page = await visitor.open("/en/courses/distributed-tensorflow")
    archives = "**/lessons.ipynb.zip"
    come = await hold_requests(page, archives)
    link, bar = page.get_by_role("link", name="Download all lessons"), page.get_by_role("progressbar", name="Preparing")
    await link.click()
    await expect(bar).to_be_visible()
    await expect(page.locator("#announcements")).to_contain_text("Preparing the file…")
    await link.click()  # while it is being made, it is not asked for again
    await assert_accessible_everywhere(page, "a file that is being made")

    async with page.expect_download(timeout=120_000) as downloading:
        come.set()
    download = await downloading.value
    assert download.suggested_filename == "distributed-tensorflow.zip"
    with zipfile.ZipFile(await download.path()) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == len(CATALOG.outline("distributed-tensorflow", "en").lessons)
    await expect(bar).to_have_count(0)

    refusal = {"error": {"code": "busy", "message": "Try again in a minute."}}
    await page.unroute_all()
    await page.route(archives, lambda route: route.fulfill(status=503, json=refusal))
    await link.click()
    await expect(page.locator(".export-state")).to_have_text("Try again in a minute.")
    await expect(bar).to_have_count(0)
