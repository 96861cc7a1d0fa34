"""Instructors see the errors in lesson files on the pages that they affect; nobody else does."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from app.settings import Settings
from tests.factories.accounts import signed_in_browser

PAGES = ("/en/", "/ko/courses/small", "/zh/courses/small/first")


@pytest.fixture
def broken(app: FastAPI, settings: Settings) -> None:
    """A lesson with something that its page cannot show."""
    lesson = settings.lessons_dir / "small" / "first" / "lesson.md"
    lesson.write_text(lesson.read_text().replace("Some prose.", "Some prose.\n\n<script>alert(1)</script>"))
    app.state.catalog.reload()


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("role", ["instructor", "admin"])
async def test_the_pages_of_a_lesson_with_an_error_say_where_it_is(app: FastAPI, role: str) -> None:
    async with await signed_in_browser(app, role) as teacher:
        for path in PAGES:
            page = await teacher.get(path)
            assert "<code>small/first/lesson.md:23</code> warning: raw HTML is reduced to its words" in page.text
            assert "<script>alert(1)</script>" not in page.text
            assert page.headers["cache-control"] == "no-store"


async def test_the_pages_of_a_lesson_name_what_its_last_change_lost(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    lesson = settings.lessons_dir / "small" / "first" / "lesson.md"
    lesson.write_text(lesson.read_text().replace(":name: hello", ":name: greet"))
    app.state.catalog.reload()
    async with await signed_in_browser(app, "instructor") as teacher:
        page = await teacher.get("/en/courses/small/first")
        assert "warning: the cell &#39;hello&#39; was published and is gone" in page.text
    assert "was published" not in (await client.get("/en/courses/small/first")).text


@pytest.mark.usefixtures("broken")
async def test_learners_and_strangers_get_the_page_as_it_was(app: FastAPI, client: httpx.AsyncClient) -> None:
    async with await signed_in_browser(app, "instructor") as teacher, await signed_in_browser(app, "learner") as ada:
        for path in PAGES:
            await teacher.get(path)
            for reader in (client, ada):
                page = await reader.get(path)
                assert page.status_code == 200
                assert "lesson.md" not in page.text
                assert "mistakes-title" not in page.text


async def test_an_error_page_names_the_error_that_may_be_the_cause(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    toml = settings.lessons_dir / "small" / "course.toml"
    toml.write_text(toml.read_text().replace('["first"]', '["first", "secnd"]'))
    app.state.catalog.reload()
    async with await signed_in_browser(app, "instructor") as teacher:
        page = await teacher.get("/en/courses/small/secnd", headers={"accept": "text/html"})
        assert page.status_code == 404
        assert "there is no lesson &#39;secnd&#39; in this folder" in page.text
    page = await client.get("/en/courses/small/secnd", headers={"accept": "text/html"})
    assert "in this folder" not in page.text
    assert (await client.get("/en/courses/small/first")).status_code == 200
