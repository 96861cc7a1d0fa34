"""Pages: languages, errors, and what may be cached for everyone."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import httpx
import pytest
from fastapi import FastAPI
from jinja2 import FileSystemLoader

from app.main import create_app
from app.settings import Settings
from app.web import rendering
from app.web.rendering import PAGE_SHELL
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import ORIGIN, browser_client
from tests.factories.request_statements import statements_of_requests

HTML = {"accept": "text/html,*/*"}
LESSON_PAGE = "/en/courses/small/first"


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({}, "/en/"),
        ({"accept-language": "ko-KR,ko;q=0.9"}, "/ko/"),
        ({"accept-language": "ko", "cookie": "lockstep_lang=zh"}, "/zh/"),
        ({"cookie": "lockstep_lang=xx"}, "/en/"),
        ({"cookie": "a/b=c; lockstep_lang=ko"}, "/ko/"),
    ],
)
async def test_the_bare_address_leads_to_the_language_that_suits(
    client: httpx.AsyncClient, headers: dict[str, str], address: str
) -> None:
    response = await client.get("/", headers=headers)

    assert (response.status_code, response.headers["location"]) == (302, address)


@pytest.fixture
async def public_app(settings: Settings) -> AsyncIterator[FastAPI]:
    """An application whose settings say at which address people reach it."""
    app = create_app(settings.model_copy(update={"public_url": ORIGIN}))
    async with app.router.lifespan_context(app):
        yield app


async def test_a_page_names_itself_in_every_language(public_app: FastAPI) -> None:
    async with browser_client(public_app) as client:
        html = (await client.get("/ko/courses/small/first")).text

    assert '<html lang="ko">' in html
    assert f'<link rel="canonical" href="{ORIGIN}/ko/courses/small/first">' in html
    for code in ("en", "ko", "zh"):
        assert f'<link rel="alternate" hreflang="{code}" href="{ORIGIN}/{code}/courses/small/first">' in html
    assert f'<link rel="alternate" hreflang="x-default" href="{ORIGIN}/en/courses/small/first">' in html
    assert '<meta property="og:title" content="The first lesson · A small course · Lockstep">' in html
    assert '<meta property="og:description" content="It prints.">' in html
    assert '<meta property="og:locale" content="ko_KR">' in html


async def test_a_link_to_a_lesson_shows_the_cover_of_its_course_if_there_is_one(settings: Settings) -> None:
    cover, page = settings.lessons_dir / "small" / "cover.png", "/ko/courses/small/first"
    app = create_app(settings.model_copy(update={"public_url": ORIGIN}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        assert "og:image" not in (await client.get(page)).text
        assert (await client.get("/ko/courses/small/cover.png")).status_code == 404
    cover.write_bytes(b"\x89PNG\r\n\x1a\n")
    app = create_app(settings.model_copy(update={"public_url": ORIGIN}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        html = (await client.get(page)).text
        file = await client.get("/ko/courses/small/cover.png")
        assert (await client.get("/ko/courses/other/cover.png")).status_code == 404

    assert f'<meta property="og:image" content="{ORIGIN}/ko/courses/small/cover.png">' in html
    assert '<meta property="og:image:alt" content="A small course">' in html
    assert (file.headers["content-type"], file.content) == ("image/png", cover.read_bytes())
    assert "default-src 'none'" in file.headers["content-security-policy"]


async def test_a_link_to_a_lesson_shows_its_own_cover_in_its_language(settings: Settings) -> None:
    folder = settings.lessons_dir / "small"
    (folder / "first" / "lesson.ko.md").write_text((folder / "first" / "lesson.md").read_text())
    course, english, korean = (
        folder / "cover.png",
        folder / "first" / "cover.png",
        folder / "first" / "cover.ko.png",
    )
    for cover in (course, english, korean):
        cover.write_bytes(b"\x89PNG\r\n\x1a\n" + cover.name.encode() + str(cover is course).encode())
    page = "/courses/small/first"
    app = create_app(settings.model_copy(update={"public_url": ORIGIN}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        for lang, cover in (("ko", korean), ("en", english), ("zh", english)):
            html = (await client.get(f"/{lang}{page}")).text
            assert f'<meta property="og:image" content="{ORIGIN}/{lang}{page}/cover.png">' in html
            assert '<meta property="og:image:alt" content="The first lesson">' in html
            file = await client.get(f"/{lang}{page}/cover.png")
            assert (file.headers["content-type"], file.content) == ("image/png", cover.read_bytes())
        assert f'content="{ORIGIN}/en/courses/small/cover.png"' in (await client.get("/en/courses/small")).text


async def test_without_a_public_address_search_engines_get_no_links(client: httpx.AsyncClient) -> None:
    html = (await client.get(LESSON_PAGE)).text

    assert not re.findall('rel="(?:alternate|canonical)"|property="og:', html)
    assert (await client.get("/robots.txt")).text == "User-agent: *\nAllow: /\n"
    assert (await client.get("/sitemap.xml")).status_code == 404


async def test_the_sitemap_lists_each_published_page_in_each_language(public_app: FastAPI) -> None:
    async with browser_client(public_app) as client, await signed_in_browser(public_app, "instructor") as teacher:
        robots = (await client.get("/robots.txt")).text
        answer = await client.get("/sitemap.xml")
        theirs = await teacher.get("/sitemap.xml")

    assert f"Sitemap: {ORIGIN}/sitemap.xml" in robots
    assert answer.headers["content-type"] == "application/xml"
    site = ElementTree.fromstring(answer.content)
    name = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
    pages = ("/", "/playground", "/courses/small", "/courses/small/first")
    listed = [f"{ORIGIN}/{code}{page}" for page in pages for code in ("en", "ko", "zh")]
    assert [each.text for each in site.iter(name)] == listed
    assert theirs.content == answer.content
    assert answer.text.count(f'hreflang="x-default" href="{ORIGIN}/en/courses/small/first"') == 3


async def test_every_run_button_has_a_name_of_its_own(client: httpx.AsyncClient) -> None:
    html = (await client.get(LESSON_PAGE)).text

    names = re.findall(
        r'data-action="run".*?<span class="label">(Run)</span><span class="visually-hidden">( .+?)<', html
    )
    assert len(names) == html.count('data-action="run"') > 1
    assert len(set(names)) == len(names)


async def test_a_word_is_another_one_where_another_language_needs_it(client: httpx.AsyncClient) -> None:
    found = {lang: (await client.get(f"/{lang}/courses/small/first")).text for lang in ("en", "zh")}

    assert ">Report</a>" in found["en"]
    assert ">报告问题</a>" in found["zh"], "what one does with a comment is called 举报"


async def test_choosing_another_language_than_the_browsers_is_remembered(client: httpx.AsyncClient) -> None:
    navigation = {"accept-language": "en", "sec-fetch-mode": "navigate"}

    same = await client.get("/en/", headers=navigation)
    other = await client.get("/ko/", headers=navigation)

    assert "set-cookie" not in same.headers
    assert other.headers["set-cookie"].startswith("lockstep_lang=ko;")


async def test_an_error_speaks_the_language_of_the_page_that_asks(client: httpx.AsyncClient) -> None:
    english = (await client.get("/runs/none")).json()["error"]["message"]
    korean = (await client.get("/runs/none", headers={"x-lockstep-lang": "ko"})).json()["error"]["message"]

    assert english == "This run does not exist."
    assert korean != english


@pytest.mark.parametrize("path", ["/en/courses/small/none", "/en/courses/none/x", "/en/none", "/fr/", "/none"])
async def test_an_unknown_page_offers_the_outline(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path, headers=HTML)

    assert response.status_code == 404
    assert response.headers["content-type"].startswith("text/html")
    assert "/courses/small/first" in response.text
    assert "<title>Page not found · Lockstep</title>" in response.text
    said = response.text.partition("<h1>")[2]
    assert "There is nothing at this address." not in said, "the heading says so already"
    assert said.count("Here is everything we have.") == 1


async def test_programs_get_errors_as_json(client: httpx.AsyncClient) -> None:
    response = await client.get("/en/courses/small/none", headers={"accept": "application/json"})

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "lesson_not_found"


async def test_what_was_asked_for_is_escaped_on_the_error_page(client: httpx.AsyncClient) -> None:
    response = await client.get("/en/courses/<script>x/y", headers=HTML)

    assert response.status_code == 404
    assert "<script>x" not in response.text


async def test_a_method_that_is_not_there_is_said(client: httpx.AsyncClient) -> None:
    response = await client.delete("/runs")

    assert response.status_code == 405
    assert "POST" in response.headers["allow"]
    assert response.json()["error"]["code"] == "method_not_allowed"


async def test_a_fault_of_ours_shows_no_trace(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the secret reason")

    monkeypatch.setattr(app.state.catalog, "lesson", fail)
    async with browser_client(app) as client:
        for headers in (HTML, {}):
            response = await client.get(LESSON_PAGE, headers=headers)
            assert response.status_code == 500
            assert "secret" not in response.text
            assert "Traceback" not in response.text
            assert response.headers["x-request-id"] in response.text
            assert "content-security-policy" in response.headers


async def test_an_error_page_that_fails_itself_still_says_what_happened(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = replace(PAGE_SHELL.get(app), error_context=lambda *_: {"courses": 1 / 0})
    monkeypatch.setattr(app.state, "page_shell", shell)
    async with browser_client(app) as client:
        response = await client.get("/en/none", headers=HTML)

    assert response.status_code == 404
    assert response.text == "There is nothing at this address."


async def test_a_lesson_page_asks_the_database_nothing(app: FastAPI, client: httpx.AsyncClient) -> None:
    statements = statements_of_requests(app)

    for path in ("/en/", "/en/courses/small", LESSON_PAGE):
        assert (await client.get(path)).status_code == 200

    assert statements == []


async def test_a_page_the_browser_has_is_not_sent_again_until_the_lesson_changes(
    app: FastAPI, client: httpx.AsyncClient, settings: Settings
) -> None:
    first = await client.get(LESSON_PAGE)
    known = {"if-none-match": first.headers["etag"]}
    assert (await client.get(LESSON_PAGE, headers=known)).status_code == 304

    lesson = Path(settings.lessons_dir) / "small" / "first" / "lesson.md"
    lesson.write_text(lesson.read_text().replace("Some prose.", "Other prose."))
    app.state.catalog.reload()

    again = await client.get(LESSON_PAGE, headers=known)
    assert again.status_code == 200
    assert "Other prose." in again.text


async def test_a_page_from_the_cache_has_all_that_the_first_one_had(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"accept-language": "en", "sec-fetch-mode": "navigate"}
    async with browser_client(app) as client:
        first = await client.get("/ko/courses/small/first", headers=headers)
        client.cookies.clear()
        monkeypatch.setattr(app.state.catalog, "lesson", lambda *_: 1 / 0)
        again = await client.get("/ko/courses/small/first", headers=headers)

    assert (again.status_code, again.text) == (200, first.text)
    assert again.headers.pop("x-request-id") != first.headers.pop("x-request-id")
    assert again.headers == first.headers
    assert "content-security-policy" in again.headers
    assert again.headers["set-cookie"].startswith("lockstep_lang=ko;")


@pytest.mark.parametrize(("environment", "shown"), [("development", "second"), ("production", "first")])
async def test_in_development_a_changed_template_is_read_again(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: Literal["development", "production"],
    shown: str,
) -> None:
    home = tmp_path / "lessons" / "home.html"
    monkeypatch.setattr(
        rendering.template_environment(environment == "development"), "loader", FileSystemLoader(tmp_path)
    )
    app = create_app(settings.model_copy(update={"environment": environment}))
    async with app.router.lifespan_context(app), browser_client(app) as client:
        for second, text in enumerate(("first", "second")):
            home.write_text(text)
            os.utime(home, (second, second))
            response = await client.get("/en/")

    assert response.text == shown


async def test_pages_of_two_languages_are_kept_apart(client: httpx.AsyncClient) -> None:
    english, korean = [(await client.get(f"/{lang}/courses/small/first")).text for lang in ("en", "ko")]

    assert '<html lang="ko">' in korean
    assert english != korean


async def test_a_lesson_shows_the_machines_of_its_cells_and_the_session_that_of_the_first(settings: Settings) -> None:
    source = settings.lessons_dir / "small/first/lesson.md"
    text = source.read_text().replace(":name: hello\n", ":name: hello\n:topology: cpu\n")
    source.write_text(text + "\n```{code-cell} python\n:name: more\n:topology: tpu:8\n\nprint(2)\n```\n")
    app = create_app(settings)

    async with app.router.lifespan_context(app), browser_client(app) as client:
        html = (await client.get(LESSON_PAGE)).text

    assert 'id="session" data-state="unknown" data-topology="cpu"' in html
    about = html.partition('aria-label="About this lesson"')[2].partition("</ul>")[0]
    assert re.findall("CPU|GPU|TPU", about) == ["CPU", "TPU"]


async def test_a_page_is_sent_compressed_to_whoever_can_read_it(client: httpx.AsyncClient) -> None:
    zipped = await client.get(LESSON_PAGE, headers={"accept-encoding": "gzip"})
    plain = await client.get(LESSON_PAGE, headers={"accept-encoding": "identity"})

    assert zipped.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert zipped.text == plain.text


async def test_the_switch_of_languages_keeps_path_and_query(app: FastAPI) -> None:
    async with await signed_in_browser(app, "instructor") as teacher:
        for path in (
            "/en/moderation?kind=newest",
            "/en/feedback/inbox?which=all&kind=code",
            "/en/courses/small/first/comments?cell=hello",
            "/en/sign-in?next=/en/settings",
            "/en/settings",
        ):
            html = (await teacher.get(path)).text
            assert f'<a href="/ko{path[3:].replace("&", "&amp;")}" lang="ko"' in html, path


async def test_a_page_kept_for_everyone_has_nothing_of_the_query_it_was_first_asked_with(
    client: httpx.AsyncClient,
) -> None:
    first = await client.get("/en/courses/small/first?from=somebody")
    assert "somebody" not in first.text


async def test_search_engines_hear_of_other_languages_on_public_pages_only(public_app: FastAPI) -> None:
    async with await signed_in_browser(public_app, "instructor") as teacher:
        for path in ("/en/", "/en/courses/small", "/en/courses/small/first/comments", "/en/sign-in", "/en/feedback"):
            assert 'rel="alternate" hreflang="ko"' in (await teacher.get(path)).text, path
        for path in ("/en/settings", "/en/moderation", "/en/feedback/inbox", "/en/achievements", "/en/nothing"):
            answer = (await teacher.get(path, headers={"accept": "text/html"})).text
            assert "<html" in answer, path
            assert 'rel="alternate"' not in answer, path
            assert 'hreflang="ko"' in answer, "the switch is there"


async def test_tags_are_on_a_lesson_in_their_own_language_only(settings: Settings) -> None:
    original = settings.lessons_dir / "small" / "first" / "lesson.md"
    original.with_name("lesson.ko.md").write_text(original.read_text())
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        pages = {lang: (await client.get(f"/{lang}/courses/small/first")).text for lang in ("en", "ko", "zh")}
    shown = {lang: '<li class="chip">start</li>' in page for lang, page in pages.items()}
    assert shown == {"en": True, "ko": False, "zh": True}, "the lesson is not translated into Chinese"


async def test_a_lesson_that_is_not_translated_is_shown_in_english_with_a_note(client: httpx.AsyncClient) -> None:
    html = (await client.get("/ko/courses/small/first")).text
    assert '<article data-reading="small/first" data-scratch="small/first" lang="en">' in html
    assert '<p class="admonition note" role="note" lang="ko">' in html
    assert "Some prose." in html
    assert 'role="note" lang=' not in (await client.get("/en/courses/small/first")).text


async def test_the_home_page_introduces_the_course_that_the_site_has(client: httpx.AsyncClient) -> None:
    page = (await client.get("/en/")).text

    assert '<h1 id="hero-title">A small course</h1>' in page
    assert "Learn distributed TensorFlow by running it. Read a lesson" not in page
    assert "beat-band" not in page


async def test_a_course_says_who_it_is_for_and_what_they_need_and_will_learn(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    short = (await client.get("/en/courses/small")).text
    assert "course-about" not in short
    assert "· 1 lesson · 5 minutes</p>" in short
    lesson = settings.lessons_dir / "small" / "first" / "lesson.md"
    lesson.write_text(lesson.read_text().replace("minutes: 5\n", "minutes: 170\n"))
    toml = settings.lessons_dir / "small" / "course.toml"
    lists = 'prerequisites = ["Time"]\noutcomes = { en = ["stop"], ko = ["멈추기", "가기"] }'
    toml.write_text(f'audience.en = "For <you>."\n{lists}\n{toml.read_text()}')
    app.state.catalog.reload()

    english, korean = [(await client.get(f"/{lang}/courses/small")).text for lang in ("en", "ko")]

    assert "· 1 lesson · 3 hours</p>" in english
    assert "<h2>Who it is for</h2><p>For &lt;you&gt;.</p>" in english
    assert "<h2>What you need</h2><ul><li>Time</li></ul>" in english
    assert "<h2>What you will be able to do</h2><ul><li>stop</li></ul>" in english
    assert "<ul><li>멈추기</li><li>가기</li></ul>" in korean, "a warning does not keep the course from being shown"


async def test_a_lesson_names_the_lessons_to_read_first(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    folder = settings.lessons_dir / "small"
    text = (folder / "first" / "lesson.md").read_text()
    (folder / "second").mkdir()
    (folder / "second" / "lesson.md").write_text(text.replace("topology:", "requires: [first]\ntopology:", 1))
    toml = folder / "course.toml"
    toml.write_text(toml.read_text().replace('["first"]', '["first", "second"]'))
    app.state.catalog.reload()

    link = '<a href="/ko/courses/small/first" lang="en">The first lesson</a>'
    assert f"먼저 읽을 레슨: {link}" in (await client.get("/ko/courses/small/second")).text
    assert "Read first:" not in (await client.get("/en/courses/small/first")).text
    course = (await client.get("/en/courses/small")).text
    assert 'Read first: <span>The first lesson</span><span class="requirement-words"' in course
    assert course.count('data-required-lesson="small/first"') == 1
