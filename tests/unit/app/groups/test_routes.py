"""Groups over HTTP: joining by a link, who sees and changes what, and what learners decide themselves."""

from __future__ import annotations

import asyncio
import csv
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import delete, select, update

from app.accounts.models import Account, Role
from app.accounts.personal_data import erase_account
from app.accounts.tokens import token_hash
from app.db import Database, now
from app.exercises.models import Submission, Verdict
from app.exercises.verdicts import CheckResult, dump_results
from app.groups import members, reminders
from app.groups.models import Group, GroupDeadline, GroupInvitation, GroupMember, GroupRole
from app.groups.personal_data import export_groups
from app.groups.review_routes import reviews_exercises
from app.lessons.catalog import Catalog
from app.progress.models import LessonProgress
from app.rate_limit import RateLimitPolicy
from app.runs.models import RunEvent, RunState
from app.web.dependencies import DATABASE, SETTINGS
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.exercises import write_exercise_lesson
from tests.factories.mailbox import Mailbox
from tests.factories.stored_runs import store_run

LINK = re.compile(r'value="http://test(/en/groups/join/([A-Za-z0-9_-]{43}))"')
NOTE_VERSION = re.compile(r'name="version" value="([^"]*)"')
ERROR = '{"kind":"error","seq":1,"at_ms":1,"name":"ValueError","value":"secret <b>value</b>","frames":[]}'


class Classroom:
    """A group with an instructor, and people who have or have not joined it."""

    def __init__(self, app: FastAPI, running: AsyncExitStack) -> None:
        self.app = app
        self.db: Database = DATABASE.get(app)
        self._running = running

    async def browser(self, account: Account | str = Role.learner) -> httpx.AsyncClient:
        return await self._running.enter_async_context(await signed_in_browser(self.app, account))

    async def person(self, name: str, role: Role = Role.learner) -> tuple[Account, httpx.AsyncClient]:
        account = await store_account(self.db, role, name=name)
        return account, await self.browser(account)

    async def create(self, instructor: httpx.AsyncClient, **fields: str) -> str:
        """Create a group; its path."""
        made = await instructor.post("/en/groups", data={"name": "Autumn", "course": "small"} | fields)
        assert made.status_code == 303, made.text
        return made.headers["location"].removesuffix("/settings")

    async def link(self, instructor: httpx.AsyncClient, group: str) -> str:
        """Make an invitation; the path of its link."""
        made = await instructor.post(f"{group}/settings/invitations", data={"days": "7"})
        found = LINK.search(made.text)
        assert found is not None, made.text
        return found[1]

    async def joined(self, link: str, name: str, **choices: str) -> tuple[Account, httpx.AsyncClient]:
        account, browser = await self.person(name)
        assert (await browser.post(link, data=choices)).status_code == 303
        return account, browser

    async def failed_run(self, account: Account, code: str, **facts: Any) -> None:
        facts = {"state": RunState.finished, "outcome": "error", "learner_id": account.learner_id, "code": code} | facts
        run = await store_run(self.db, lesson=LESSON, cell="hello", **facts)
        async with self.db.writing() as session:
            session.add(RunEvent(run_id=run, seq=1, kind="error", at_ms=1, payload=ERROR))

    async def failed_tries(self, account: Account, count: int) -> None:
        facts: dict[str, Any] = {"learner_id": account.learner_id, "state": RunState.finished, "outcome": "ok"}
        for _ in range(count):
            run = await store_run(self.db, lesson=LESSON, cell="hello", judgement=True, **facts)
            row = {"run_id": run, "idempotency_key": run, "verdict": Verdict.failed, "lesson_digest": "d"}
            async with self.db.writing() as session:
                session.add(Submission(**row, results=dump_results([CheckResult("prints", 5, "failed")])))

    def configure(self, **values: Any) -> None:
        """Give the running application other settings."""
        SETTINGS.set(self.app, SETTINGS.get(self.app).model_copy(update=values))

    async def change(self, statement: Any) -> None:
        async with self.db.writing() as session:
            await session.execute(statement)

    async def deadlines(self) -> list[GroupDeadline]:
        async with self.db.session() as session:
            return list(await session.scalars(select(GroupDeadline).order_by(GroupDeadline.exercise)))

    async def member_rows(self) -> list[GroupMember]:
        async with self.db.session() as session:
            return list(await session.scalars(select(GroupMember)))


@pytest.fixture
async def room(app: FastAPI) -> AsyncIterator[Classroom]:
    async with AsyncExitStack() as running:
        yield Classroom(app, running)


def paths_of_staff(group: str, learner: str) -> list[tuple[str, str]]:
    """Every address that only the staff of a group may use."""
    reports = ("lessons", "exercises", "errors", "limits", "questions")
    reading = [f"{group}/reports/{name}{end}" for name in reports for end in ("", ".csv")]
    cell = f"?lesson={LESSON}&cell=hello"
    reading += [f"{group}/learners", f"{group}/learners.csv", f"{group}/learners/{learner}", f"{group}/settings"]
    reading += [f"{group}/stopped?lesson={LESSON}", f"{group}/reviews", f"{group}/reviews.csv"]
    reading += [
        f"{group}/cells/{what}{end}{cell}" for what in ("errors", "limits", "wrong-answers") for end in ("", ".csv")
    ]
    writing = [f"{group}/learners/{learner}/note", f"{group}/learners/{learner}/reminder", f"{group}/settings"]
    writing.append(f"{group}/learners/reminders")
    writing += [f"{group}/settings/{what}" for what in ("invitations", "invitations/revoke", "deadlines", "delete")]
    writing += [f"{group}/settings/members/{learner}{end}" for end in ("", "/remove")]
    reading.append(f"{group}/settings/members/{learner}/remove")
    return [("GET", path) for path in reading] + [("POST", path) for path in writing]


FORM = {"name": "Autumn", "note": "x", "day": "", "what": LESSON, "role": "learner", "time_zone": "UTC"}


async def test_learners_join_by_a_link_and_see_what_instructors_see(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    ada, learner = await room.person("Ada")

    invitation = await learner.get(link)
    assert (invitation.status_code, "Autumn" in invitation.text, "Grace" in invitation.text) == (200, True, True)
    assert [row.role for row in await room.member_rows()] == [GroupRole.instructor]
    assert (await learner.post(link)).headers["location"] == group

    own = await learner.get(group, follow_redirects=True)
    assert own.url.path == f"{group}/me"
    theirs = await teacher.get(f"{group}/learners/{ada.id}")
    assert "not shown" in own.text
    assert "not shown" in theirs.text
    assert ada.email not in theirs.text
    assert "Ada" in (await teacher.get(f"{group}/learners")).text


async def test_an_invitation_waits_while_its_learner_signs_up(room: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    mailbox = Mailbox(monkeypatch)
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher, name="Autumn <b>")
    link = await room.link(teacher, group)
    account = {"name": "Ada", "email": "ada@example.org", "password": "correct horse battery"}

    async with browser_client(room.app) as nobody:
        asked = await nobody.get(link, headers={"accept": "text/html"})
        assert asked.headers["location"].endswith(f"/en/sign-in?next={link.replace('/', '%2F')}")
        for page in ("sign-in", "sign-up"):
            form = (await nobody.get(f"/en/{page}", params={"next": link})).text
            assert "you can join the group" in form
            assert "Autumn &lt;b&gt;" in form
        assert "join the group" not in (await nobody.get("/en/sign-up", params={"next": link[:-1]})).text
        refused = await nobody.post("/en/sign-up", data=account | {"next": link, "password": "short"})
        assert "Autumn &lt;b&gt;" in refused.text
        await nobody.post("/en/sign-up", data=account | {"next": link})
        async with asyncio.timeout(60):
            while not mailbox.mails:  # noqa: ASYNC110 - the sender is a task beside us
                await asyncio.sleep(0.01)
        confirmed = await nobody.post(mailbox.link("ada@example.org"), data={"password": account["password"]})
        assert confirmed.headers["location"] == link
        assert (await nobody.post(link)).headers["location"] == group


async def test_learners_see_in_their_settings_who_sees_them_and_can_leave(room: Classroom) -> None:
    grace, teacher = await room.person("Grace <b>", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    helper, _ = await room.joined(link, "Helper")
    await teacher.post(f"{group}/settings/members/{helper.id}", data={"role": "assistant"})
    _, ada = await room.joined(link, "Ada", code="yes")
    _, bob = await room.joined(link, "Bob")

    for browser, code in ((ada, "They see your code."), (bob, "They do not see your code.")):
        settings = (await browser.get("/en/settings")).text
        assert 'href="/en/groups"' in settings.partition('class="settings-nav"')[2].partition("</nav>")[0]
        page = (await browser.get("/en/groups")).text
        assert "Instructors: Grace &lt;b&gt; · Assistants: Helper · " in page
        assert code in page
        assert f'href="{group}/me"' in page
    for page in ((await bob.get(link)).text, (await bob.get(f"{group}/me")).text):
        assert "<dt>Instructors</dt><dd>Grace &lt;b&gt;</dd>" in page
        assert "<dt>Assistants</dt><dd>Helper</dd>" in page
    await room.change(update(Account).where(Account.id == grace.id).values(role=Role.learner))
    assert "Grace" not in (await ada.get("/en/groups")).text.partition('class="group-list"')[2]

    assert (await ada.post(f"{group}/leave")).headers["location"] == "/en/groups"
    assert "You are in no group." in (await ada.get("/en/groups")).text
    taught = (await teacher.get("/en/groups")).text
    assert "Autumn" in taught
    assert "/leave" not in taught
    assert "see your work" not in taught


def section(page: str, title: str) -> str:
    """The HTML of the section of a page with this heading."""
    return page.partition(f'aria-labelledby="{title}"')[2].partition("</section>")[0]


async def test_the_own_page_has_everything_that_the_page_of_the_staff_has(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, learner = await room.joined(await room.link(teacher, group), "Ada", code="yes")
    await room.failed_run(ada, "print('mine')")

    own = (await learner.get(f"{group}/me")).text
    theirs = (await teacher.get(f"{group}/learners/{ada.id}")).text

    sections = ("lessons-title", "exercises-title", "wrong-title", "errors-title", "limits-title")
    for title in sections:
        ours, yours = (section(text, title) for text in (own, theirs))
        assert ours.strip()
        assert ours == yours
    for fact in ("Ada", f"@{ada.handle}", "print(&#39;mine&#39;)"):
        assert fact in own
        assert fact in theirs


async def test_everyone_else_finds_nothing_of_a_group(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, learner = await room.joined(await room.link(teacher, group), "Ada")
    bob, other_learner = await room.joined(await room.link(teacher, group), "Bob")
    _, other_teacher = await room.person("Alan", Role.instructor)
    own_group = await room.create(other_teacher, name="Mine")
    stranger = await room.browser()

    for who in (learner, other_learner, other_teacher, stranger):
        for method, path in paths_of_staff(group, ada.id):
            answer = await who.request(method, path, data=FORM if method == "POST" else None)
            assert answer.status_code == 404, (path, answer.status_code)
    for method, path in paths_of_staff(own_group, ada.id):  # a learner of another group, named in one's own
        if ada.id in path:
            answer = await other_teacher.request(method, path, data=FORM if method == "POST" else None)
            assert answer.status_code == 404, path
    for who in (other_teacher, stranger):
        assert (await who.get(f"{group}/me")).status_code == 404
        assert (await who.post(f"{group}/leave")).status_code == 404
    async with browser_client(room.app) as nobody:
        for method, path in paths_of_staff(group, ada.id):
            assert (await nobody.request(method, path)).status_code == 401
    assert {row.account_id for row in await room.member_rows()} >= {ada.id, bob.id}


async def test_a_request_from_another_site_changes_nothing(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    _, learner = await room.person("Ada")
    foreign = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}

    assert (await learner.post(link, headers=foreign)).status_code == 403
    assert (await teacher.post(f"{group}/settings/delete", data=FORM, headers=foreign)).status_code == 403
    assert len(await room.member_rows()) == 1


async def test_an_invitation_that_expired_or_was_revoked_lets_nobody_in(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    expired, revoked, ended = [await room.link(teacher, group) for _ in range(3)]
    hashed = token_hash(expired.rpartition("/")[2])
    await room.change(
        update(GroupInvitation).where(GroupInvitation.token_hash == hashed).values(expires_at=now() - timedelta(1))
    )
    form = {"invitation": token_hash(revoked.rpartition("/")[2])}
    assert (await teacher.post(f"{group}/settings/invitations/revoke", data=form)).status_code == 303
    _, learner = await room.person("Ada")

    for link in (expired, revoked, "/en/groups/join/" + "a" * 43, "/en/groups/join/short"):
        assert (await learner.get(link)).status_code == 404
        assert (await learner.post(link)).status_code == 404
    await room.change(update(Group).values(ends_at=now() - timedelta(seconds=1)))
    assert (await learner.post(ended)).status_code == 404
    assert len(await room.member_rows()) == 1


async def test_an_instructor_cannot_revoke_the_link_of_another_group(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    link = await room.link(teacher, await room.create(teacher))
    _, other = await room.person("Alan", Role.instructor)
    theirs = await room.create(other)

    form = {"invitation": token_hash(link.rpartition("/")[2])}
    await other.post(f"{theirs}/settings/invitations/revoke", data=form)

    assert (await (await room.browser()).get(link)).status_code == 200


async def test_joining_twice_keeps_the_role_and_what_was_agreed(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    ada, learner = await room.joined(link, "Ada", code="yes")
    before = next(row.code_shared_at for row in await room.member_rows() if row.account_id == ada.id)

    assert (await learner.post(link)).status_code == 303
    assert (await teacher.post(link)).status_code == 303

    rows = {row.role: row for row in await room.member_rows()}
    assert len(rows) == 2
    assert rows["learner"].code_shared_at == before


async def test_two_joins_at_once_make_one_member(room: Classroom) -> None:
    ada = await store_account(room.db)
    _, teacher = await room.person("Grace", Role.instructor)
    token = (await room.link(teacher, await room.create(teacher))).rpartition("/")[2]
    for _ in range(2):  # each in a transaction of its own, as two requests
        async with room.db.writing() as session:
            await members.join(session, ada, token, shares_code=True, reminders=False)

    assert len(await room.member_rows()) == 2


async def test_code_and_messages_are_shown_only_while_a_learner_agrees(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    ada, learner = await room.joined(link, "Ada")
    cell = f"{group}/cells/errors?lesson={LESSON}&cell=hello"
    pages = (cell, f"{group}/learners/{ada.id}")
    await room.failed_run(ada, "before = 'agreed'")

    hidden = [(await teacher.get(page)).text for page in pages]
    await learner.post(f"{group}/me", data={"code": "yes"})
    await room.failed_run(ada, "after = '<script>'")
    shown = [(await teacher.get(page)).text for page in pages]
    await learner.post(f"{group}/me", data={})
    revoked = [(await teacher.get(page)).text for page in pages]
    own = (await learner.get(f"{group}/me")).text

    for text in (*hidden, *revoked, own):
        assert "ValueError" in text
        assert not re.search("agreed|after =|secret", text)
    for text in shown:
        assert "after = &#39;&lt;script&gt;&#39;" in text
        assert "secret &lt;b&gt;value" in text
        assert "agreed&#39;" not in text
    file = (await teacher.get(f"{group}/reports/errors.csv")).text
    assert "hello" in file.lower()
    assert "after" not in file
    details = await teacher.get(cell.replace("/errors?", "/errors.csv?"))
    assert details.text.splitlines()[1] == '"ValueError","1","2"'
    assert (await teacher.get(cell.replace("hello", "none"))).status_code == 404
    assert (await teacher.get(cell.replace(LESSON, "other/first"))).status_code == 404


async def test_files_open_in_spreadsheets_and_are_named_for_the_group(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher, name="Autumn 2026 / A")
    korean = await room.create(teacher, name="가을 반")
    await room.joined(await room.link(teacher, group), "김민준")

    for path, name in (
        ("reports/lessons.csv?period=7", "lessons-7-days"),
        ("reports/questions.csv?period=all", "questions-all"),
        (f"cells/errors.csv?lesson={LESSON}&cell=hello", "cell-errors-30-days"),
        ("reviews.csv", "reviews"),
        ("learners.csv", "learners"),
    ):
        answer = await teacher.get(f"{group}/{path}")
        assert answer.content.startswith(b'\xef\xbb\xbf"')
        assert f'filename="lockstep-autumn-2026-a-{name}.csv"' in answer.headers["content-disposition"]
    assert "김민준" in answer.content.decode("utf-8-sig")
    named = (await teacher.get(f"{korean}/learners.csv")).headers["content-disposition"]
    assert 'filename="lockstep-learners.csv"' in named
    assert f"filename*=UTF-8''lockstep-{quote('가을-반')}-learners.csv" in named


async def test_the_file_of_questions_leads_to_the_comments(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    _, learner = await room.joined(await room.link(teacher, group), "Ada")
    await learner.post(f"/en/courses/{LESSON}/comments", data={"text": "Why?", "key": "one", "cell": "hello"})

    file = await teacher.get(f"{group}/reports/questions.csv")
    (row,) = list(csv.reader(file.text.splitlines()))[1:]
    assert row[0] == "Why?"
    assert row[-1].startswith("http://test/en/comments/")
    assert (await teacher.get(row[-1], follow_redirects=True)).status_code == 200


async def test_cells_of_reports_name_their_columns_for_phones(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada")
    await room.failed_tries(ada, 3)

    page = (await teacher.get(f"{group}/reports/exercises")).text
    assert 'class="group-table stacks last-first" role="table"' in page
    labels = re.findall('role="cell" data-label="([^"]*)"', page)
    assert labels == ["Tried", "Passed", "Passed at once", "Tries per learner", "Stuck"]


async def test_the_page_of_reviews_says_if_no_exercise_is_reviewed(
    room: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)

    assert "No exercise of this course is reviewed." in (await teacher.get(f"{group}/reviews")).text
    monkeypatch.setattr("app.groups.review_routes.reviews_exercises", lambda *_: True)
    assert "No exercise of this course is reviewed." not in (await teacher.get(f"{group}/reviews")).text


@pytest.mark.parametrize("reviewed", [True, False])
def test_a_course_reviews_exercises_if_a_lesson_says_so(tmp_path: Path, reviewed: bool) -> None:
    write_exercise_lesson(tmp_path)
    lesson = next(tmp_path.rglob("lesson.md"))
    if reviewed:
        text = lesson.read_text(encoding="utf-8").replace(":xp: 25\n", ":xp: 25\n:review: manual\n")
        lesson.write_text(text, encoding="utf-8")
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()

    assert reviews_exercises(catalog, "course", "en") is reviewed
    assert not reviews_exercises(catalog, "none", "en")


async def test_the_period_is_kept_from_tab_to_tab(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    await room.joined(await room.link(teacher, group), "Ada")

    for path in ("reports/errors", "learners", "reviews", "settings"):
        chosen = (await teacher.get(f"{group}/{path}?period=7")).text
        for tab in ("reports/exercises", "learners", "reviews"):
            assert f'href="{group}/{tab}?period=7"' in chosen
        unknown = (await teacher.get(f"{group}/{path}?period=no")).text
        assert f'href="{group}/reports/exercises"' in unknown
    searched = (await teacher.get(f"{group}/learners?period=7")).text
    assert '<input type="hidden" name="period" value="7">' in searched


async def test_numbers_of_who_is_stuck_or_stopped_lead_to_their_names(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, learner = await room.joined(await room.link(teacher, group), "Ada")
    await room.failed_tries(ada, 3)
    long_ago = now() - timedelta(days=8)
    opened = {"learner_id": ada.learner_id, "lesson": LESSON, "started_at": long_ago, "last_seen_at": long_ago}
    async with room.db.writing() as session:
        session.add(LessonProgress(**opened, anchor=""))

    for report, anchor in (("exercises", "#stuck"), ("lessons", "")):
        table = (await teacher.get(f"{group}/reports/{report}?period=all")).text.partition("<tbody")[2]
        (link,) = re.findall(r'<td[^>]*>(?:<svg.*?</svg>)?<a href="([^"]*)">1</a>', table)
        assert "period=all" in link
        assert link.endswith(anchor)
        listed = (await teacher.get(unescape(link))).text
        assert f'<a href="{group}/learners/{ada.id}">Ada</a>' in listed
        if anchor:  # the kinds of wrong answers are a section of their own
            assert "What went wrong</h2>" in section(listed, "kinds-title")
    assert "Stuck" in section((await teacher.get(f"{group}/learners/{ada.id}")).text, "exercises-title")
    stuck = (await teacher.get(f"{group}/learners?stuck=true&sort=stuck&search=a&period=7")).text
    assert f"/learners/{ada.id}#exercises" in stuck
    assert re.findall(r'aria-sort="(\w+)"><a class="sort" href="([^"]*)">(\w+)', stuck) == [
        (
            "descending",
            f"{group}/learners?period=7&amp;search=a&amp;stuck=true&amp;lessons=0&amp;sort=stuck&amp;reverse=true",
            "Stuck",
        )
    ]
    assert 'name="sort" value="stuck"' in stuck
    assert f'href="{group}/learners?period=7&amp;search=a&amp;stuck=false&amp;sort=stuck&amp;reverse=false"' in stuck
    assert (await teacher.get(f"{group}/learners?sort=email")).status_code == 422
    await learner.post(f"{group}/leave")
    assert "Nobody here is stuck." in (await teacher.get(f"{group}/learners?stuck=true")).text
    assert (await teacher.get(f"{group}/stopped?lesson=other/first")).status_code == 404


async def test_reports_are_sorted_by_their_headings_and_keep_the_order_in_another_period(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada")
    await room.failed_tries(ada, 3)

    page = (await teacher.get(f"{group}/reports/exercises?period=7")).text
    assert "aria-sort" not in page
    headings = re.findall(r'<th scope="col"[^>]*><a class="sort" href="([^"]*)">([^<]*)', page)
    assert [words for _, words in headings] == [
        *("Exercise", "Tried", "Passed", "Passed at once", "Tries per learner", "Stuck")
    ]
    by_stuck = (await teacher.get(unescape(headings[5][0]))).text
    (sort,) = re.findall(r'aria-sort="(\w+)"><a class="sort" href="([^"]*)">(\w+)', by_stuck)
    assert sort == ("descending", f"{group}/reports/exercises?period=7&amp;sort=5&amp;reverse=true", "Stuck")
    assert f'href="{group}/reports/exercises?sort=5&amp;reverse=false&amp;period=all"' in by_stuck
    assert 'aria-sort="ascending"' in (await teacher.get(unescape(sort[1]))).text
    assert (await teacher.get(f"{group}/reports/exercises?sort=-1")).status_code == 422
    stopped = (await teacher.get(f"{group}/stopped?lesson={LESSON}&sort=1")).text
    assert "Nobody stopped here in this time." in stopped


async def test_work_outside_the_days_of_a_group_is_not_shown(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada", code="yes")
    await room.failed_run(ada, "before", created_at=now() - timedelta(days=3))
    await room.failed_run(ada, "after", created_at=now())
    await room.change(update(Group).values(starts_at=now() - timedelta(days=2), ends_at=now() - timedelta(days=1)))

    assert "No run ended with an error" in (await teacher.get(f"{group}/reports/errors?period=all")).text
    assert "No run ended with an error" in (await teacher.get(f"{group}/learners/{ada.id}")).text


async def test_a_group_that_has_ended_says_so_on_its_pages_and_in_lists(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    _, admin = await room.person("Root", Role.admin)
    group = await room.create(teacher)
    ada, learner = await room.joined(await room.link(teacher, group), "Ada")
    paths = [path for method, path in paths_of_staff(group, ada.id) if method == "GET" and ".csv" not in path]
    pages = [(teacher, path) for path in paths] + [(learner, f"{group}/me")]
    lists = [(who, "/en/groups") for who in (teacher, learner, admin)]

    for who, path in pages + lists:
        assert not re.search("This group ended|>ended<", (await who.get(path)).text), path
    await room.change(update(Group).values(ends_at=datetime(2026, 1, 2, tzinfo=UTC), time_zone="UTC"))
    for who, path in pages:
        assert "This group ended on Jan 1, 2026." in (await who.get(path)).text, path
    for who, path in lists:
        assert '<span class="chip">ended</span>' in (await who.get(path)).text


async def test_an_assistant_sees_learners_and_changes_nothing_of_the_group(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    ada, _ = await room.joined(link, "Ada")
    bob, assistant = await room.joined(link, "Bob")
    assert (await teacher.post(f"{group}/settings/members/{bob.id}", data={"role": "assistant"})).status_code == 303

    assert (await assistant.get(f"{group}/learners/{ada.id}")).status_code == 200
    saved = await assistant.post(f"{group}/learners/{ada.id}/note", data={"note": "Asked about <b>shards</b>"})
    assert saved.status_code == 303
    assert "Asked about &lt;b&gt;shards" in (await teacher.get(f"{group}/learners/{ada.id}")).text
    for method, path in paths_of_staff(group, ada.id):
        if "/settings" in path:
            answer = await assistant.request(method, path, data=FORM if method == "POST" else None)
            assert answer.status_code == 403, path
    refused = await teacher.post(f"{group}/settings/members/{bob.id}", data={"role": "instructor"})
    assert refused.status_code == 422
    assert "instructor on this site" in refused.text


async def test_who_was_removed_or_demoted_sees_nothing_any_more(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    alan, other = await room.person("Alan", Role.instructor)
    await other.post(link)
    ada, learner = await room.joined(link, "Ada")
    await teacher.post(f"{group}/settings/members/{alan.id}", data={"role": "instructor"})
    assert (await other.get(f"{group}/settings")).status_code == 200

    await room.change(update(Account).where(Account.id == alan.id).values(role=Role.learner))
    assert (await other.get(f"{group}/learners")).status_code == 404
    await room.change(update(Account).where(Account.id == alan.id).values(role=Role.instructor))
    await teacher.post(f"{group}/settings/members/{alan.id}/remove")
    assert (await other.get(f"{group}/learners")).status_code == 404
    await learner.post(f"{group}/leave")
    assert (await teacher.get(f"{group}/learners/{ada.id}")).status_code == 404
    assert (await learner.get(f"{group}/me")).status_code == 404


async def test_removing_and_leaving_name_first_what_is_lost(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    ada, learner = await room.joined(link, "Ada <b>")
    bob, other = await room.joined(link, "Bob")
    page, removal = f"{group}/learners/{ada.id}", f"{group}/settings/members/{ada.id}/remove"
    assert f'href="{removal}"' in (await teacher.get(page)).text
    assert "private note" not in (await teacher.get(removal)).text
    await teacher.post(f"{page}/note", data={"note": "x"})

    asked = await teacher.get(removal)
    assert "Remove Ada &lt;b&gt; from the group" in asked.text
    assert "The private note about them is deleted." in asked.text
    assert f'href="{page}">Cancel' in asked.text
    assert len(await room.member_rows()) == 3
    assert (await teacher.post(f"{group}/settings/members/{ada.id}", data={"role": "remove"})).status_code == 422
    done = await teacher.post(removal)
    assert done.status_code == 303
    shown = (await teacher.get(done.headers["location"])).text
    assert "Ada &lt;b&gt; was removed from the group." in shown
    forged = done.headers["location"].replace(ada.id, bob.id)
    assert "was removed" not in (await teacher.get(forged)).text
    assert (await learner.get(f"{group}/leave")).status_code == 404

    for address in ("/en/groups", f"{group}/me"):
        assert f'href="{group}/leave"' in (await other.get(address)).text
    asked = await other.get(f"{group}/leave")
    assert "The instructors of the group no longer see what you do." in asked.text
    assert len(await room.member_rows()) == 2
    assert (await other.post(f"{group}/leave")).status_code == 303
    assert [row.role for row in await room.member_rows()] == [GroupRole.instructor]


async def test_where_a_refused_form_is_shown_reloading_opens_its_page(room: Classroom) -> None:
    grace, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada")
    page, settings, review = f"{group}/learners/{ada.id}", f"{group}/settings", f"{group}/reviews/1"

    refused = await teacher.post(f"{settings}/members/{ada.id}", data={"role": "instructor"})
    assert refused.status_code == 422
    assert "instructor on this site" in refused.text
    assert 'id="note-title"' in refused.text  # the learner's page, from which it was sent
    targets = {f"{page}/note": page, f"{page}/reminder": page, f"{settings}/members/{ada.id}": page}
    targets |= {f"{settings}/{end}": settings for end in ("invitations", "invitations/revoke", "deadlines", "delete")}
    targets |= {f"{review}/comments": review, f"{review}/comments/1/remove": review}
    targets[f"{group}/learners/reminders"] = f"{group}/learners"
    targets[f"{settings}/members/{grace.id}"] = f"{settings}#staff"
    for address, target in targets.items():
        answer = await teacher.get(address)
        assert (answer.status_code, answer.headers.get("location")) == (303, target), address
    stranger = await room.browser()
    assert (await stranger.get(f"{settings}/members/{ada.id}")).status_code == 404


async def test_a_group_keeps_its_last_instructor(room: Classroom) -> None:
    grace, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)

    member = f"{group}/settings/members/{grace.id}"
    assert (await teacher.post(member, data={"role": "learner"})).status_code == 409
    refused = await teacher.post(f"{member}/remove")
    assert (refused.status_code, "This is the last instructor" in refused.text) == (409, True)
    assert (await teacher.post(f"{group}/leave")).status_code == 409


async def test_an_admin_is_an_instructor_of_every_group(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    _, admin = await room.person("Root", Role.admin)

    assert "Autumn" in (await admin.get("/en/groups")).text
    assert (await admin.get(f"{group}/settings")).status_code == 200


async def test_staff_of_a_group_needs_the_second_factor_of_the_site(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    bob, assistant = await room.joined(await room.link(teacher, group), "Bob")
    await teacher.post(f"{group}/settings/members/{bob.id}", data={"role": "assistant"})
    room.configure(staff_second_factor=True)

    for who in (teacher, assistant):
        assert "Set one up" in (await who.get(f"{group}/learners", headers={"accept": "application/json"})).text
    assert (await (await room.browser(Role.learner)).get("/en/groups")).status_code == 200


async def test_a_deleted_account_leaves_nothing_in_its_groups(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada")
    await teacher.post(f"{group}/learners/{ada.id}/note", data={"note": "A note"})
    async with room.db.session() as session:
        (row,) = [row async for row in export_groups(session, ada)]
    assert (row["group"], row["note"], row["role"]) == ("Autumn", "A note", "learner")

    async with room.db.writing() as session:
        await erase_account(session, ada, [])

    assert [row.account_id for row in await room.member_rows() if row.account_id == ada.id] == []
    assert (await teacher.get(f"{group}/learners/{ada.id}")).status_code == 404


async def test_a_reminder_is_sent_once_in_three_days_and_can_be_refused(
    room: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = Mailbox(monkeypatch)
    room.configure(smtp_url="smtp://localhost")
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada", reminders="yes")
    url = f"{group}/learners/{ada.id}/reminder"

    page, button = f"{group}/learners/{ada.id}", "Send the reminder"
    assert (await teacher.post(url, data={"message": "Come back"})).status_code == 409  # no address of this site
    assert "This site cannot send email." in (await teacher.get(page)).text
    room.configure(public_url="http://test")
    assert button in (await teacher.get(page)).text
    sent = await teacher.post(url, data={"message": "Come <b>back</b>"})
    reminded = (await teacher.get(page)).text
    assert "was sent less than 3 days ago" in reminded
    assert button not in reminded
    again = await teacher.post(url, data={"message": "And again"})

    assert (sent.status_code, again.status_code) == (303, 429)
    assert "And again" in again.text
    async with asyncio.timeout(60):
        while not mailbox.mails:  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    (email,) = mailbox.mails
    assert (email.recipient, email.account_id) == (ada.email, ada.id)
    assert "Come &lt;b&gt;back" in email.html
    stop = email.unsubscribe_url.removeprefix("http://test")
    assert ada.email not in stop
    async with browser_client(room.app) as program:
        damaged = stop[:-4] + ("AAAA" if stop[-4:] != "AAAA" else "BBBB")
        assert (await program.post(damaged)).status_code == 404
        one_click = {"sec-fetch-site": "cross-site", "origin": "https://mail.example"}
        assert (await program.get(stop)).status_code == 200
        assert (await program.post(stop, headers=one_click)).status_code == 200
    await room.change(update(GroupMember).values(reminded_at=None))
    assert (await teacher.post(url, data={})).status_code == 409
    refusing = (await teacher.get(page)).text
    assert "This learner does not accept reminders" in refusing
    assert button not in refusing


async def test_a_reminder_goes_to_all_shown_learners_who_can_have_one(
    room: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = Mailbox(monkeypatch)
    room.configure(smtp_url="smtp://localhost", public_url="http://test")
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    link = await room.link(teacher, group)
    ada, adas = await room.joined(link, "Ada", reminders="yes")
    bob, _ = await room.joined(link, "Bob", reminders="yes")
    carol, _ = await room.joined(link, "Carol")
    _, outsider = await room.person("Dan")

    def shown(page: str) -> set[str]:
        return set(" ".join(re.findall(r'name="learners" value="([^"]*)"', page)).split())

    page = (await teacher.get(f"{group}/learners?period=7&sort=seen&reverse=true")).text
    assert shown(page) == {ada.id, bob.id}
    assert "Send 2 reminders" in page
    assert shown((await teacher.get(f"{group}/learners?search=bob")).text) == {bob.id}
    (url,) = re.findall(r'action="([^"]*/learners/reminders[^"]*)"', page)
    first, last = sorted([ada.id, bob.id])
    fields = {"learners": f"{last} {first} {carol.id} {last} nobody", "message": "Come <b>back</b>"}
    for stranger in (adas, outsider):
        assert (await stranger.post(unescape(url), data=fields)).status_code == 404
    form = {"content-type": "application/x-www-form-urlencoded"}
    for nobody in ("", "%00", "%FF"):
        assert (await teacher.post(unescape(url), content=f"learners={nobody}", headers=form)).status_code == 404
    too_long = await teacher.post(unescape(url), data=fields | {"message": "x" * 1001})
    assert (too_long.status_code, "x" * 1001 in too_long.text, shown(too_long.text)) == (422, True, {ada.id, bob.id})
    sent = await teacher.post(unescape(url), data=fields)
    assert (sent.status_code, sent.headers["location"]) == (303, unescape(url).replace("/reminders", ""))
    after = (await teacher.get(sent.headers["location"])).text
    assert "The reminders are on their way." in after
    assert not shown(after)
    async with asyncio.timeout(60):
        while len(mailbox.mails) < 2:  # noqa: ASYNC110 - the sender is a task beside us
            await asyncio.sleep(0.01)
    assert {email.account_id for email in mailbox.mails} == {ada.id, bob.id}
    assert all("Come &lt;b&gt;back" in email.html for email in mailbox.mails)

    again = await teacher.post(unescape(url), data=fields | {"message": "And again"})
    assert (again.status_code, "And again" in again.text) == (429, True)
    await room.change(update(GroupMember).values(reminded_at=None))
    monkeypatch.setattr(reminders, "REMINDERS_PER_SENDER", RateLimitPolicy(3, 60.0, 60.0))
    partly = await teacher.post(unescape(url), data=fields)
    assert "Some of the reminders are on their way." in (await teacher.get(partly.headers["location"])).text
    sent_to = {row.account_id for row in await room.member_rows() if row.reminded_at}
    assert sent_to == {first}, "rows are locked in the order of their IDs, whatever that of the table"


async def test_numbers_are_at_the_end_of_their_column_beside_a_column_of_texts(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada")
    await room.failed_run(ada, "x", outcome="timeout")

    page = (await teacher.get(f"{group}/reports/limits")).text
    assert '<td role="cell" data-label="Outcome">' in page
    assert '<td role="cell" data-label="Learners" class="is-number has-bar">' in page
    assert len(re.findall(r'<th scope="col" role="columnheader" class="is-number">', page)) == 2


async def test_only_instructors_of_the_site_create_groups_and_mistakes_are_named(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    learner = await room.browser()

    assert (await learner.post("/en/groups", data={"name": "Mine", "course": "small"})).status_code == 403
    for fields, reason in (
        ({"name": " "}, "Write something"),
        ({"name": "x" * 101}, "101 characters"),
        ({"course": "none"}, "choose a course"),
        ({"first_day": "2026-31-12"}, "2027-03-31"),
        ({"first_day": "2026-12-02", "last_day": "2026-12-01"}, "before the first"),
    ):
        refused = await teacher.post("/en/groups", data={"name": "Kept", "course": "small"} | fields)
        assert refused.status_code == 422, fields
        assert reason in refused.text
    assert 'value="2026-12-02"' in refused.text
    assert await room.member_rows() == []


async def test_a_group_is_made_in_a_time_zone_that_its_pages_name(room: Classroom) -> None:
    grace, teacher = await room.person("Grace", Role.instructor)
    chosen = re.compile(r'<select id="time_zone"[^>]*?( data-time-zone)?>.*?<option selected>([^<]+)</option>')

    assert chosen.findall((await teacher.get("/en/groups")).text) == [(" data-time-zone", "UTC")]
    await room.change(update(Account).where(Account.id == grace.id).values(time_zone="Europe/Berlin"))
    assert chosen.findall((await teacher.get("/en/groups")).text) == [("", "Europe/Berlin")]
    refused = await teacher.post("/en/groups", data={"name": "", "course": "small", "time_zone": "Asia/Seoul"})
    assert chosen.findall(refused.text) == [("", "Asia/Seoul")]

    group = await room.create(teacher, time_zone="Asia/Seoul")
    ada, learner = await room.joined(await room.link(teacher, group), "Ada")
    pages = [path for method, path in paths_of_staff(group, ada.id) if method == "GET" and ".csv" not in path]
    for browser, path in (*((teacher, page) for page in pages), (learner, f"{group}/me")):
        if "wrong-answers" not in path:  # the cell is no exercise
            assert (await browser.get(path)).text.count("Time zone: Asia/Seoul</p>") == 1, path


async def test_deadlines_are_set_for_lessons_of_the_course_and_shown_to_learners(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher, time_zone="Asia/Seoul")
    ada, learner = await room.joined(await room.link(teacher, group), "Ada")
    url = f"{group}/settings/deadlines"

    for what, day in (("other/first", "2026-01-01"), (f"{LESSON}#none", "2026-01-01"), (LESSON, "soon")):
        assert (await teacher.post(url, data={"what": what, "day": day})).status_code == 422
    assert (await teacher.post(url, data={"what": LESSON, "day": "2026-01-01"})).status_code == 303
    assert (await teacher.post(url, data={"what": LESSON, "day": "2026-01-02"})).status_code == 303
    for text in ((await learner.get(f"{group}/me")).text, (await teacher.get(f"{group}/learners/{ada.id}")).text):
        assert "Jan 2, 2026" in text
        assert "overdue" in text
    assert "is-overdue" in (await teacher.get(f"{group}/learners")).text
    await teacher.post(url, data={"what": LESSON, "day": ""})
    assert "overdue" not in (await learner.get(f"{group}/me")).text


async def test_a_changed_time_zone_moves_deadlines_so_that_their_days_stay(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher, time_zone="UTC")
    url = f"{group}/settings"
    assert (await teacher.post(f"{url}/deadlines", data={"what": LESSON, "day": "2026-12-10"})).status_code == 303

    for zone, hour in (("Asia/Seoul", 15), ("America/New_York", 5), ("UTC", 0)):
        seen = form_of((await teacher.get(url)).text)
        assert (await teacher.post(url, data=seen | {"time_zone": zone})).status_code == 303
        (due,) = await room.deadlines()
        assert due.due_at == datetime(2026, 12, 11 if zone != "Asia/Seoul" else 10, hour, tzinfo=UTC)
        assert "Dec 10, 2026" in (await teacher.get(url)).text


async def test_two_instructors_who_set_one_deadline_at_once_lose_nothing(room: Classroom) -> None:
    _, grace = await room.person("Grace", Role.instructor)
    group = await room.create(grace, time_zone="Asia/Seoul")
    url = f"{group}/settings/deadlines"
    choices = re.compile(f'<option value="({LESSON}@[^"]*)"')

    async def shown() -> str:
        return str(choices.findall((await grace.get(f"{group}/settings")).text)[0])

    async def send(what: str, day: str) -> httpx.Response:
        return await grace.post(url, data={"what": what, "day": day})

    empty = await shown()
    assert [(await send(empty, "2026-12-12")).status_code for _ in range(2)] == [303, 303]
    late = await send(empty, "2026-12-15")
    assert late.status_code == 409
    assert "The last day is now: Dec 12, 2026. Yours was not saved." in late.text
    assert 'value="2026-12-15"' in late.text
    assert f'<option value="{LESSON}@2026-12-12" selected>' in late.text
    assert (await send(f"{LESSON}@2026-12-10", "")).status_code == 409  # nor is a deadline removed that was moved

    assert (await send(choices.findall(late.text)[0], "2026-12-15")).status_code == 303
    assert (await send(f"{LESSON}@2026-12-15", "")).status_code == 303
    assert await room.deadlines() == []
    gone = await send(f"{LESSON}@2026-12-15", "2026-12-20")
    assert (gone.status_code, "The last day is now: –." in gone.text) == (409, True)


async def test_names_of_learners_are_no_formulas_and_no_markup(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher, name="<img src=x>")
    await room.joined(await room.link(teacher, group), "=HYPERLINK(1)")

    file = await teacher.get(f"{group}/learners.csv")
    assert file.text.splitlines()[1].startswith("\"'=HYPERLINK")
    assert file.headers["content-type"].startswith("text/csv")
    assert "no-store" in file.headers["cache-control"]
    page = await teacher.get(f"{group}/learners")
    assert "<img" not in page.text
    assert "no-store" in page.headers["cache-control"]


def form_of(page: str) -> dict[str, str]:
    """What the form with the name and the days of a group would send as it is."""
    inputs = re.findall(
        r'<input[^>]* name="((?:was_)?(?:name|first_day|last_day|time_zone))"[^>]* value="([^"]*)"', page
    )
    zone = re.search(r"<option selected>([^<]+)</option>", page)
    assert zone is not None
    return dict(reversed(inputs)) | {"time_zone": zone[1]}  # the name of a group that is to be deleted comes last


async def test_two_instructors_who_save_at_once_undo_nothing_of_each_other(room: Classroom) -> None:
    _, grace = await room.person("Grace", Role.instructor)
    group = await room.create(grace)
    alan, other = await room.joined(await room.link(grace, group), "Alan")
    await room.change(update(Account).where(Account.id == alan.id).values(role=Role.instructor))
    await grace.post(f"{group}/settings/members/{alan.id}", data={"role": "instructor"})
    url = f"{group}/settings"
    seen = form_of((await grace.get(url)).text)

    assert (await other.post(url, data=seen | {"name": "Winter", "last_day": "2027-03-31"})).status_code == 303
    assert (await grace.post(url, data=seen | {"first_day": "2027-01-11"})).status_code == 303
    both = form_of((await grace.get(url)).text)
    assert (both["name"], both["first_day"], both["last_day"]) == ("Winter", "2027-01-11", "2027-03-31")

    refused = await grace.post(url, data=seen | {"name": "Spring", "first_day": "2027-01-12"})
    assert refused.status_code == 409
    assert "It is now: Name: Winter; First day: 2027-01-11." in refused.text
    again = form_of(refused.text)
    assert (again["name"], again["first_day"], again["last_day"]) == ("Spring", "2027-01-12", "2027-03-31")
    assert (await grace.post(url, data=again)).status_code == 303
    assert form_of((await other.get(url)).text)["name"] == "Spring"


async def test_a_group_is_deleted_by_its_name(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    await room.joined(await room.link(teacher, group), "Ada")

    assert (await teacher.post(f"{group}/settings/delete", data={"name": "autumn"})).status_code == 422
    assert (await teacher.post(f"{group}/settings/delete", data={"name": "Autumn"})).status_code == 303
    assert await room.member_rows() == []
    assert (await teacher.get(f"{group}/settings")).status_code == 404


async def test_two_instructors_who_write_a_note_at_once_lose_nothing(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, _ = await room.joined(await room.link(teacher, group), "Ada")
    page = f"{group}/learners/{ada.id}"
    seen = NOTE_VERSION.findall((await teacher.get(page)).text)

    first = {"note": "From <b>Grace</b>", "version": seen[0]}
    assert [(await teacher.post(f"{page}/note", data=first)).status_code for _ in range(2)] == [303, 303]
    late = await teacher.post(f"{page}/note", data={"note": "From Alan", "version": seen[0]})
    assert late.status_code == 409
    assert "This note was changed while you wrote" in late.text
    assert "From &lt;b&gt;Grace&lt;/b&gt;</blockquote>" in late.text
    assert ">From Alan</textarea>" in late.text
    assert [row.note for row in await room.member_rows() if row.account_id == ada.id] == ["From <b>Grace</b>"]

    knowing = {"note": "From both", "version": NOTE_VERSION.findall(late.text)[0]}
    assert (await teacher.post(f"{page}/note", data=knowing)).status_code == 303
    assert [row.note for row in await room.member_rows() if row.account_id == ada.id] == ["From both"]


async def test_a_note_is_about_a_learner_and_not_about_the_staff(room: Classroom) -> None:
    grace, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)

    assert (await teacher.post(f"{group}/learners/{grace.id}/note", data={"note": "x"})).status_code == 404
    assert [row.note for row in await room.member_rows()] == [""]


async def test_members_keep_their_pages_when_the_course_is_gone(room: Classroom) -> None:
    _, teacher = await room.person("Grace", Role.instructor)
    group = await room.create(teacher)
    ada, learner = await room.joined(await room.link(teacher, group), "Ada", code="yes")
    await room.change(update(Group).values(course="no-longer-served"))

    reading = [path for method, path in paths_of_staff(group, ada.id) if method == "GET" and "?lesson=" not in path]
    for path in reading:
        assert (await teacher.get(path)).status_code == 200, path
    assert "no-longer-served" in (await teacher.get(f"{group}/settings")).text
    own = await learner.get(f"{group}/me")
    assert (own.status_code, "no-longer-served" in own.text) == (200, True)
    assert (await learner.post(f"{group}/me")).status_code == 303
    assert [row.code_shared_at for row in await room.member_rows() if row.account_id == ada.id] == [None]
    assert (await learner.post(f"{group}/leave")).status_code == 303
    await room.change(delete(Group))
    assert (await teacher.get(group)).status_code == 404
