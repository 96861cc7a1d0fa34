"""Feedback over HTTP: with and without scripts, for a visitor, a learner, another learner and an instructor."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.accounts.models import Role
from app.feedback import service
from app.feedback.models import LessonVote, ProblemReport
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client
from tests.factories.xss_payloads import XSS_PAYLOADS

LESSON = "/en/courses/small/first"
VOTE = f"{LESSON}/helpful"
FORM = "/en/feedback"
INBOX = "/en/feedback/inbox"
HTMX = {"hx-request": "true"}


@dataclass
class Class:
    """People with each role, each with a browser."""

    app: FastAPI
    stranger: httpx.AsyncClient
    ada: httpx.AsyncClient
    bob: httpx.AsyncClient
    teacher: httpx.AsyncClient


@pytest.fixture
async def room(app: FastAPI) -> AsyncIterator[Class]:
    db = app.state.db
    async with (
        browser_client(app) as stranger,
        await signed_in_browser(app, await store_account(db, name="Ada Byron")) as ada,
        await signed_in_browser(app, await store_account(db, name="Bob Moore")) as bob,
        await signed_in_browser(app, await store_account(db, Role.instructor, name="Tea Cher")) as teacher,
    ):
        yield Class(app, stranger, ada, bob, teacher)


async def send(client: httpx.AsyncClient, text: str = "A typo", **fields: str) -> httpx.Response:
    """Send the form as a browser without scripts does."""
    filled = {"text": text, "kind": "text", "page": LESSON, "key": f"k{text[:20]}", **fields}
    return await client.post(FORM, data=filled)


async def stored(app: FastAPI) -> list[ProblemReport]:
    async with app.state.db.session() as session:
        return list(await session.scalars(select(ProblemReport).order_by(ProblemReport.id)))


async def votes(app: FastAPI) -> list[tuple[bool, str]]:
    async with app.state.db.session() as session:
        return [(vote.helpful, vote.comment) for vote in await session.scalars(select(LessonVote))]


async def test_a_stranger_reports_a_problem_and_an_instructor_reads_it(room: Class) -> None:
    form = await room.stranger.get(FORM, params={"page": LESSON, "cell": "hello"})
    assert "set-cookie" not in form.headers
    assert re.search(r'value="hello" selected', form.text)

    sent = await send(room.stranger, "It says “helo”", kind="code", cell="hello")
    assert sent.status_code == 303
    thanks = await room.stranger.get(sent.headers["location"])
    inbox = await room.teacher.get(INBOX)

    assert "Thank you." in thanks.text
    assert "It says “helo”" in inbox.text
    assert "a visitor" in inbox.text
    assert f'href="{LESSON}#cell-hello"' in inbox.text


async def test_only_instructors_read_and_handle_what_was_sent(room: Class) -> None:
    await send(room.ada)
    (problem,) = await stored(room.app)
    for client, status in ((room.stranger, 401), (room.ada, 403), (room.bob, 403)):
        assert (await client.get(INBOX)).status_code == status
        assert (await client.get("/en/feedback/votes")).status_code == status
        assert (await client.post(f"{INBOX}/{problem.id}", data={"verb": "resolve"})).status_code == status
    assert "Ada Byron" in (await room.teacher.get(INBOX)).text
    assert (await room.teacher.post(f"{INBOX}/none", data={"verb": "resolve"})).status_code == 404
    assert (await room.teacher.post(f"{INBOX}/{problem.id}", data={"verb": "burn"})).status_code == 422


async def test_a_problem_is_resolved_with_a_note_and_reopened(room: Class) -> None:
    await send(room.ada, "Mend me")
    (problem,) = await stored(room.app)
    address = f"{INBOX}/{problem.id}"

    done = await room.teacher.post(address, data={"verb": "resolve", "text": "Mended", "here": f"{INBOX}?which=open"})
    assert (done.status_code, done.headers["location"]) == (303, f"{INBOX}?which=open")
    assert "Mend me" not in (await room.teacher.get(INBOX)).text
    resolved = (await room.teacher.get(INBOX, params={"which": "resolved"})).text
    assert "Tea Cher: Mended" in resolved

    row = await room.teacher.post(address, data={"verb": "reopen"}, headers=HTMX)
    assert "Mark as resolved" in row.text
    assert "<html" not in row.text
    assert "Mend me" in (await room.teacher.get(INBOX)).text
    away = await room.teacher.post(address, data={"verb": "resolve", "here": "//evil.example"})
    assert away.headers["location"].startswith("/en/feedback/inbox")


async def test_a_note_that_cannot_be_kept_comes_back(room: Class) -> None:
    await send(room.ada)
    (problem,) = await stored(room.app)
    for headers in ({}, HTMX):
        answer = await room.teacher.post(
            f"{INBOX}/{problem.id}", data={"verb": "resolve", "text": "n" * 501}, headers=headers
        )
        assert answer.status_code == 422
        assert "n" * 501 in answer.text
        assert 'aria-invalid="true"' in answer.text
    assert (await stored(room.app))[0].resolved_at is None


async def test_the_inbox_is_narrowed_by_kind_and_lesson(room: Class) -> None:
    await send(room.ada, "In the lesson")
    await send(room.ada, "Of the front page", page="/en/", kind="page")

    by_lesson = (await room.teacher.get(INBOX, params={"lesson": "small/first", "kind": ""})).text
    by_kind = (await room.teacher.get(INBOX, params={"kind": "page"})).text

    assert "In the lesson" in by_lesson
    assert "Of the front page" not in by_lesson
    assert "Of the front page" in by_kind
    assert "In the lesson" not in by_kind


async def test_sent_twice_it_is_there_once_also_before_the_visitor_has_a_cookie(room: Class) -> None:
    for _click in range(2):
        async with browser_client(room.app) as newcomer:
            assert (await send(newcomer)).status_code == 303
    assert len(await stored(room.app)) == 1
    await send(room.stranger, "Another text from the same form", key="kA typo")
    await send(room.stranger, "Another text from the same form", key="of the form opened again")
    assert len(await stored(room.app)) == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": ""}, "Write something first."),
        ({"text": "x" * 4_001}, "4,001 characters"),
        ({"text": "a\0b"}, "cannot be stored"),
        ({"kind": "money"}, "Choose what the problem is about."),
    ],
)
@pytest.mark.parametrize("headers", [{}, HTMX])
async def test_what_cannot_be_taken_comes_back_with_the_reason_beside_it(
    room: Class, fields: dict[str, str], said: str, headers: dict[str, str]
) -> None:
    filled = {"text": "Kept <text>", "kind": "text", "page": LESSON, "cell": "alone", "key": "k1", **fields}
    answer = await room.stranger.post(FORM, data=filled, headers=headers)

    assert answer.status_code == 422
    assert said in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert 'value="k1"' in answer.text
    assert re.search(r'value="alone" selected', answer.text)
    if "text" not in fields:
        assert "Kept &lt;text&gt;</textarea>" in answer.text
    assert await stored(room.app) == []


async def test_bytes_that_are_no_text_are_refused(room: Class) -> None:
    head = {"content-type": "application/x-www-form-urlencoded"}
    for text in (b"%ff%fe", b"%ed%a0%80", b"a%00"):
        answer = await room.stranger.post(FORM, content=b"kind=text&text=" + text, headers=head)
        assert answer.status_code == 422
        vote = await room.stranger.post(VOTE, content=b"helpful=yes&text=x" + text, headers=head)
        assert vote.status_code == 422
    assert await stored(room.app) == []
    assert await votes(room.app) == []


async def test_no_attack_reaches_the_inbox_as_markup(room: Class, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PROBLEMS_PER_LEARNER", service.PROBLEMS_PER_NETWORK)
    for number, attack in enumerate([*XSS_PAYLOADS[:30], "\u202ereversed"]):
        await send(room.ada, attack or "-", key=str(number), page=attack)
    inbox = (await room.teacher.get(INBOX)).text

    assert "[U+202E]reversed" in inbox
    shown = re.findall(r'<p class="problem-text"[^>]*>(.*?)</p>', inbox, re.DOTALL)
    assert len(shown) == 30
    assert not any("<" in text for text in shown)


@pytest.mark.usefixtures("rate_limit_clock")
async def test_whoever_sends_much_waits_and_keeps_the_text(room: Class) -> None:
    for number in range(6):
        assert (await send(room.ada, f"Number {number}")).status_code == 303
    answer = await send(room.ada, "Number 7")

    assert answer.status_code == 429
    assert "Number 7</textarea>" in answer.text
    assert "Wait 30 seconds" in answer.text
    assert (await send(room.bob, "Of another")).status_code == 303


@pytest.mark.parametrize(
    ("page", "kept"),
    [
        ("/en/email-link/a-secret", ""),
        ("/en/unsubscribe/a-secret", ""),
        ("/en/groups/join/a-secret", ""),
        ("/en/groups/reminders/1/2/a-secret", ""),
        ("https://evil.example/en/", ""),
        ("//evil.example", ""),
        ("javascript:alert(1)", ""),
        ("/en/settings?token=1#x", "/en/settings"),
        ("/en/courses/small/none", "/en/courses/small/none"),
        ("/en/" + "x" * 400, ""),
    ],
)
async def test_of_a_page_only_the_path_on_this_site_is_kept_and_no_secret(room: Class, page: str, kept: str) -> None:
    assert (await send(room.ada, page=page)).status_code == 303
    (problem,) = await stored(room.app)
    assert (problem.page, problem.lesson) == (kept, "")


async def test_every_page_leads_to_the_form_but_not_with_the_address_of_a_mail(room: Class) -> None:
    lesson = (await room.stranger.get(LESSON)).text
    assert f'href="{FORM}?page={LESSON}"' in lesson
    assert f'href="{FORM}?page={LESSON}&amp;cell=hello"' in lesson
    assert "page=/en/sign-in" in (await room.stranger.get("/en/sign-in")).text
    assert "page=" not in (await room.stranger.get("/en/email-link/a-secret")).text
    assert INBOX in (await room.teacher.get("/en/account-menu")).text
    assert INBOX not in (await room.ada.get("/en/account-menu")).text


async def test_a_vote_is_given_changed_and_explained(room: Class) -> None:
    assert f'action="{VOTE}"' in (await room.stranger.get(LESSON)).text
    first = await room.ada.post(VOTE, data={"helpful": "no"})
    assert (first.status_code, first.headers["location"]) == (303, f"{VOTE}?said=1")
    await room.ada.post(VOTE, data={"helpful": "no", "text": "Too <short>"})
    assert await votes(room.app) == [(False, "Too <short>")]
    await room.ada.post(VOTE, data={"helpful": "yes"}, headers=HTMX)
    assert await votes(room.app) == [(True, "Too <short>")]

    mine, theirs = await room.ada.get(VOTE), await room.bob.get(VOTE)
    assert "Too &lt;short&gt;</textarea>" in mine.text
    assert re.search(r'value="yes" aria-pressed="true"', mine.text)
    assert "Too &lt;short" not in theirs.text
    assert 'aria-pressed="true"' not in theirs.text

    await room.ada.post(VOTE, data={"helpful": "yes", "text": "  "})
    assert await votes(room.app) == [(True, "")]


@pytest.mark.parametrize("address", ["8.8.8.8", "192.168.0.7"])
async def test_new_cookies_do_not_multiply_the_votes_of_one_address(room: Class, address: str) -> None:
    async def vote(cookies: httpx.Cookies | None = None) -> httpx.Response:
        async with browser_client(room.app, address) as visitor:
            visitor.cookies = cookies or visitor.cookies
            return await visitor.post(VOTE, data={"helpful": "no"})

    answers = [await vote() for _ in range(60)]

    assert [answer.status_code for answer in answers] == [303] * 40 + [429] * 20
    assert re.search(r"Wait [1-6][0-9] seconds", answers[-1].text), "some of the minute has passed"
    assert len(await votes(room.app)) == 40
    assert (await vote(answers[0].cookies)).status_code == 303, "a vote that is there already can change"
    assert (await room.ada.post(VOTE, data={"helpful": "yes"})).status_code == 303, "an account has a vote of its own"


async def test_instructors_see_how_many_found_a_lesson_helpful_and_why(room: Class) -> None:
    await room.ada.post(VOTE, data={"helpful": "yes", "text": "The pictures"})
    await room.bob.post(VOTE, data={"helpful": "no"})
    await room.stranger.post(VOTE, data={"helpful": "yes"})
    page = (await room.teacher.get("/en/feedback/votes")).text
    korean = (await room.teacher.get("/ko/feedback/votes")).text

    assert "2 yes, 1 no (67%)" in page
    assert "The pictures" in page
    assert "네 2, 아니요 1" in korean
    other = (await room.teacher.get("/en/feedback/votes", params={"lesson": "small/none"})).text
    assert "The pictures" not in other


@pytest.mark.parametrize("headers", [{}, HTMX])
async def test_a_sentence_that_is_too_long_comes_back(room: Class, headers: dict[str, str]) -> None:
    await room.ada.post(VOTE, data={"helpful": "yes"})
    answer = await room.ada.post(VOTE, data={"helpful": "yes", "text": "s" * 501}, headers=headers)
    assert answer.status_code == 422
    assert "s" * 501 in answer.text
    assert "501 characters" in answer.text
    assert (await room.ada.post(VOTE, data={"helpful": "perhaps"})).status_code == 422
    assert (await room.ada.post("/en/courses/small/none/helpful", data={"helpful": "yes"})).status_code == 404
