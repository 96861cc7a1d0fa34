"""What a page shows of its viewer, in one response: as the single fragments say, and of this viewer only.

On SQLite and on PostgreSQL.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.accounts.models import Account, Role
from app.db import Database, now
from app.main import create_app
from app.notifications.models import NotificationKind
from app.notifications.service import mark_read, notify
from app.pieces.composer import PIECE_COMPOSER, PieceComposer
from app.progress.events import LearningEvent
from app.progress.lesson_progress import LessonVisit, record_visits
from app.progress.service import PROGRESS
from app.progress.timezones import record_timezone
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.request_statements import statements_of_requests

PIECES = "/en/pieces?course=small"
HTMX = {"hx-request": "true", "hx-current-url": "http://test/en/courses/small/first"}
NAMES = ("ada", "bob", "teacher", "stranger")


@pytest.fixture
async def site(settings: Settings, database: Database) -> AsyncIterator[FastAPI]:
    app = create_app(settings.model_copy(update={"database_url": database.url}))
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def people(site: FastAPI) -> dict[str, Account]:
    db = site.state.db
    return {
        "ada": await store_account(db, name="Ada Byron"),
        "bob": await store_account(db, name="Bob Moore"),
        "teacher": await store_account(db, Role.instructor, name="Tea Cher"),
    }


@pytest.fixture
async def browsers(site: FastAPI, people: dict[str, Account]) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        signed_in = [(name, await signed_in_browser(site, account)) for name, account in people.items()]
        clients = {name: await stack.enter_async_context(client) for name, client in signed_in}
        yield {**clients, "stranger": await stack.enter_async_context(browser_client(site))}


async def ask(client: httpx.AsyncClient, path: str = PIECES) -> str:
    response = await client.get(path, headers=HTMX)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    assert "hx-request" in response.headers["vary"]
    return response.text


async def ask_cold(site: FastAPI, client: httpx.AsyncClient, path: str = PIECES) -> str:
    """What a process answers that has rendered nothing yet."""
    warm = PIECE_COMPOSER.get(site)
    PIECE_COMPOSER.set(site, PieceComposer(warm.pieces, 0))
    answer = await ask(client, path)
    PIECE_COMPOSER.set(site, warm)
    return answer


def stages(text: str) -> dict[str, str]:
    found = re.search(r'data-stages="([^"]*)"', text)
    assert found
    return {state["slug"]: state["stage"] for state in json.loads(html.unescape(found[1]))}


async def test_after_every_change_each_viewer_gets_what_a_new_process_renders(
    site: FastAPI, people: dict[str, Account], browsers: dict[str, httpx.AsyncClient]
) -> None:
    db, progress, ada = site.state.db, PROGRESS.get(site), people["ada"]
    moment = now() - timedelta(days=2)

    async def award(*facts: LearningEvent) -> None:
        async with db.writing() as session:
            await progress.ledger.award(session, ada.learner_id, facts)

    async def visit(days: int, anchor: str) -> None:
        async with db.writing() as session:
            at = moment + timedelta(days=days)
            await record_visits(session, ada.learner_id, [LessonVisit(LESSON, at, at, anchor=anchor)])

    async def zone() -> None:
        async with db.writing() as session:
            await record_timezone(session, ada.learner_id, "Asia/Seoul")

    async def tell(subject: str) -> None:
        async with db.writing() as session:
            await notify(session, [ada.id], NotificationKind.mention, subject)

    async def read() -> None:
        async with db.writing() as session:
            await mark_read(session, ada.id)

    async def change(**values: object) -> None:
        async with db.writing() as session:
            await session.execute(update(Account).where(Account.id == ada.id).values(**values))

    steps: dict[str, tuple[Callable[[], Awaitable[None]], bool]] = {
        "opens": (lambda: visit(0, "a"), True),
        "scrolls": (lambda: visit(0, "b"), True),
        "runs": (lambda: award(LearningEvent("cell", f"{LESSON}#hello", 10)), True),
        "earns nothing": (lambda: award(LearningEvent("read", LESSON)), True),
        "is active": (lambda: award(LearningEvent("day", now().date().isoformat())), True),
        "moves": (zone, False),
        "is mentioned": (lambda: tell("one"), True),
        "is mentioned again": (lambda: tell("two"), True),
        "reads": (read, True),
        "has another name": (lambda: change(name="Ada Lovelace"), True),
        "has another handle": (lambda: change(handle="lovelace"), True),
        "shows a profile": (lambda: change(public_profile=True), True),
        "lives elsewhere": (lambda: change(time_zone="Pacific/Auckland"), False),
        "teaches": (lambda: change(role=Role.instructor), True),
        "stops teaching": (lambda: change(role=Role.learner), True),
    }
    others = {name: await ask(browsers[name]) for name in NAMES if name != "ada"}
    for step, (take, shows) in steps.items():
        before = await ask(browsers["ada"])
        await take()
        after = await ask(browsers["ada"])
        assert after == await ask_cold(site, browsers["ada"]), step
        assert not shows or after != before, f"Ada sees nothing when she {step}"
        for name, was in others.items():
            assert await ask(browsers[name]) == was, f"{name} when Ada {step}"


async def test_what_is_one_persons_never_reaches_another(
    site: FastAPI, people: dict[str, Account], browsers: dict[str, httpx.AsyncClient]
) -> None:
    async with site.state.db.writing() as session:
        await notify(session, [people["bob"].id], NotificationKind.mention, "one")
        await PROGRESS.get(site).ledger.award(
            session, people["bob"].learner_id, [LearningEvent("cell", f"{LESSON}#hello", 10)]
        )
    for order in (NAMES, tuple(reversed(NAMES))):  # whoever comes first fills the cache
        for _ in range(2):
            seen = {name: await ask(browsers[name]) for name in order}
            for name, account in people.items():
                assert {each for each in NAMES if f"@{account.handle}" in seen[each]} == {name}
            assert {name for name in NAMES if 'data-unread="1"' in seen[name]} == {"bob"}
            assert {name for name in NAMES if stages(seen[name])["first"] != "new"} == {"bob"}
            assert {name for name in NAMES if "/en/moderation" in seen[name]} == {"teacher"}
            assert {name for name in NAMES if 'data-who=""' in seen[name]} == {"stranger"}
            assert {name for name in NAMES if "/en/sign-in" in seen[name]} == {"stranger"}
        assert not browsers["stranger"].cookies


async def test_the_pieces_say_what_the_single_fragments_say(
    browsers: dict[str, httpx.AsyncClient],
) -> None:
    for name in NAMES:
        together = await ask(browsers[name])
        header = await ask(browsers[name], "/en/progress?course=small")
        bell = (await ask(browsers[name], "/en/notifications/bell")).strip()
        outline = json.loads(await ask_json(browsers[name]))["lessons"]

        assert header.strip() in together
        assert bell in together
        assert stages(together) == {state["slug"]: state["stage"] for state in outline}


async def ask_json(client: httpx.AsyncClient) -> str:
    return (await client.get("/en/progress/outline?course=small")).text


async def test_each_language_and_course_has_pieces_of_its_own(browsers: dict[str, httpx.AsyncClient]) -> None:
    for _ in range(2):
        assert "Level 0" in await ask(browsers["ada"])
        assert "레벨 0" in await ask(browsers["ada"], "/ko/pieces?course=small")
        assert "data-stages" not in await ask(browsers["ada"], "/en/pieces")
        assert "data-stages" not in await ask(browsers["ada"], "/en/pieces?course=no-such-course")


async def test_after_signing_out_elsewhere_the_pieces_are_a_visitors(
    site: FastAPI, people: dict[str, Account], browsers: dict[str, httpx.AsyncClient]
) -> None:
    assert "Ada Byron" in await ask(browsers["ada"])
    async with site.state.db.writing() as session:
        await revoke_all_auth_sessions(session, people["ada"])

    assert "Ada Byron" not in await ask(browsers["ada"])
    assert 'data-who=""' in await ask(browsers["ada"])


async def test_a_disabled_account_gets_nothing_of_it(
    site: FastAPI, people: dict[str, Account], browsers: dict[str, httpx.AsyncClient]
) -> None:
    assert "Ada Byron" in await ask(browsers["ada"])
    async with site.state.db.writing() as session:
        await session.execute(update(Account).where(Account.id == people["ada"].id).values(disabled_at=now()))

    assert "Ada Byron" not in await ask(browsers["ada"])


async def test_a_flash_message_is_shown_once(browsers: dict[str, httpx.AsyncClient]) -> None:
    browsers["ada"].cookies.set("lockstep_flash", "saved.1", domain="test.local")
    first, second = await ask(browsers["ada"]), await ask(browsers["ada"])

    assert "Saved." in first
    assert "Saved." not in second


async def test_a_stranger_signs_in_to_return_to_this_very_page(browsers: dict[str, httpx.AsyncClient]) -> None:
    for page in ("first", "second"):
        headers = HTMX | {"hx-current-url": f"http://test/en/courses/small/{page}"}
        assert f"small/{page}" in (await browsers["stranger"].get(PIECES, headers=headers)).text


async def test_an_opening_that_changes_nothing_takes_one_statement(
    site: FastAPI, browsers: dict[str, httpx.AsyncClient]
) -> None:
    await ask(browsers["ada"])
    asked = statements_of_requests(site)
    await ask(browsers["ada"])

    assert len(asked) == 1  # who asks, and what the pieces depend on


async def test_a_page_requests_its_pieces_at_once_and_nothing_else_of_its_viewer(client: httpx.AsyncClient) -> None:
    page = (await client.get("/en/courses/small/first")).text
    elements = re.findall(r"<[a-z]+ [^>]*hx-trigger=\"load[^>]*>", page)
    loads = [element for element in elements if 'id="session"' not in element]

    assert len(loads) == 1, loads
    assert 'hx-get="/en/pieces?course=small"' in loads[0]
