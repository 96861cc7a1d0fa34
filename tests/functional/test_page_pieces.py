"""What a page shows of its viewer, in one response: as the single fragments say, and of this viewer only.

On SQLite and on PostgreSQL.
"""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.accounts.models import Account, AuthSession, Role
from app.accounts.page_pieces import PageViewer
from app.db import Database, now
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.main import create_app
from app.notifications.models import NotificationKind
from app.notifications.service import mark_read, notify
from app.pieces.composer import PIECE_COMPOSER, PieceComposer
from app.prepared_query import Row
from app.progress.events import LearningEvent
from app.progress.lesson_progress import LessonVisit, record_visits
from app.progress.service import PROGRESS
from app.progress.timezones import record_timezone
from app.settings import Settings
from app.web.gzip_parts import KeptPart
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

    async def join() -> None:
        group = {"id": "a" * 32, "name": "Autumn", "course": "small", "time_zone": "UTC", "created_at": moment}
        member = {"group_id": "a" * 32, "account_id": ada.id, "role": GroupRole.learner, "joined_at": moment}
        async with db.writing() as session:
            session.add(Group(**group))
            await session.flush()
            session.add(GroupMember(**member, note=""))

    async def postpone(days: int) -> None:
        row = GroupDeadline(group_id="a" * 32, lesson=LESSON, exercise="", due_at=now() + timedelta(days=days))
        async with db.writing() as session:
            await session.merge(row)

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
        "joins a group": (join, False),
        "has a deadline": (lambda: postpone(5), True),
        "has more time": (lambda: postpone(9), True),
        "meets the deadline": (lambda: award(LearningEvent("lesson", LESSON)), True),
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


async def settle(client: httpx.AsyncClient) -> str:
    """What a browser gets once the pieces are rendered, found rendered, and kept for this browser."""
    return [await ask(client) for _ in range(3)][-1]


@pytest.fixture
def routed(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The accounts whose requests reach the route."""
    reached: list[str | None] = []
    find = PieceComposer.find

    def note(composer: PieceComposer, viewer: PageViewer, facts: Row) -> KeptPart | None:
        reached.append(viewer.account.handle if viewer.account else None)
        return find(composer, viewer, facts)

    monkeypatch.setattr(PieceComposer, "find", note)
    return reached


async def test_a_browser_gets_its_pieces_again_before_routing(
    browsers: dict[str, httpx.AsyncClient], routed: list[str | None]
) -> None:
    whole = await browsers["ada"].get(PIECES, headers=HTMX)
    kept = {name: await settle(browsers[name]) for name in NAMES}
    routed.clear()

    again = await browsers["ada"].get(PIECES, headers=HTMX)
    assert again.text == whole.text == kept["ada"]
    named = ("content-type", "content-encoding", "cache-control", "vary", "content-security-policy")
    assert [again.headers.get(name) for name in named] == [whole.headers.get(name) for name in named]
    assert [await ask(browsers[name]) for name in ("bob", "teacher")] == [kept["bob"], kept["teacher"]]
    assert not routed
    await ask(browsers["stranger"])
    assert routed == [None]


async def test_kept_pieces_are_for_the_whole_request_that_they_answered(
    browsers: dict[str, httpx.AsyncClient],
) -> None:
    ada, bob = [await settle(browsers[name]) for name in ("ada", "bob")]
    own, others = browsers["bob"].cookies["lockstep_sign_in"], browsers["ada"].cookies["lockstep_account"]

    async def bob_with(cookie: str, path: str = PIECES) -> str:
        return (await browsers["stranger"].get(path, headers={**HTMX, "cookie": cookie})).text

    assert await bob_with(f"lockstep_sign_in={own}; lockstep_account={others}") == bob
    assert ada not in [await bob_with(f"lockstep_account={others}"), await bob_with(f"lockstep_sign_in={own[:-1]}_")]
    assert "data-stages" not in await bob_with(f"lockstep_sign_in={own}", "/en/pieces")
    assert "레벨 0" in await bob_with(f"lockstep_sign_in={own}", "/ko/pieces?course=small")
    plain = await browsers["bob"].get(PIECES, headers={**HTMX, "accept-encoding": "identity"})
    assert plain.text == bob
    assert "content-encoding" not in plain.headers


async def test_kept_pieces_end_with_what_they_were_made_of(
    site: FastAPI, people: dict[str, Account], browsers: dict[str, httpx.AsyncClient]
) -> None:
    async with site.state.db.session() as session:
        (hashed,) = await session.scalars(
            select(AuthSession.token_hash).where(AuthSession.account_id == people["ada"].id)
        )

    async def change(table: type[Account | AuthSession], **values: object) -> None:
        mine = AuthSession.token_hash == hashed if table is AuthSession else Account.id == people["ada"].id
        async with site.state.db.writing() as session:
            await session.execute(update(table).where(mine).values(**values))

    assert "Ada Byron" in await settle(browsers["ada"])
    await change(Account, name="Ada Lovelace")
    assert "Ada Lovelace" in await settle(browsers["ada"])
    await change(AuthSession, last_seen_at=now() - timedelta(minutes=6))
    renewed = await browsers["ada"].get(PIECES, headers=HTMX)
    assert "lockstep_sign_in" in renewed.headers["set-cookie"]
    assert "Ada Lovelace" in await settle(browsers["ada"])
    await change(AuthSession, pending=True)
    assert "Lovelace" not in await ask(browsers["ada"])
    await change(AuthSession, pending=False)
    assert "Ada Lovelace" in await settle(browsers["ada"])
    await change(AuthSession, expires_at=now())
    assert "Lovelace" not in await ask(browsers["ada"])


async def test_kept_pieces_last_until_the_use_of_the_session_has_to_be_recorded(
    browsers: dict[str, httpx.AsyncClient], routed: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await settle(browsers["ada"])
    later = time.monotonic() + 301
    monkeypatch.setattr("app.web.part_cache.time.monotonic", lambda: later)
    routed.clear()
    await ask(browsers["ada"])

    assert len(routed) == 1


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
    assert "Ada Byron" in await settle(browsers["ada"])
    async with site.state.db.writing() as session:
        await revoke_all_auth_sessions(session, people["ada"])

    assert "Ada Byron" not in await ask(browsers["ada"])
    assert 'data-who=""' in await ask(browsers["ada"])


async def test_a_disabled_account_gets_nothing_of_it(
    site: FastAPI, people: dict[str, Account], browsers: dict[str, httpx.AsyncClient]
) -> None:
    assert "Ada Byron" in await settle(browsers["ada"])
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
    assert 'hx-get="/en/pieces?course=small&amp;lesson=first"' in loads[0]
