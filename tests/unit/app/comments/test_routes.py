"""Comments over HTTP: with and without a script, for a stranger, a learner, another learner and an instructor."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from app.accounts.models import Account, Role
from app.comments.models import Comment
from app.db import now
from app.main import create_app
from app.progress.ledger import read_known
from app.settings import Settings
from tests.factories.accounts import an_account, signed_in
from tests.factories.browser import browser

PLACE = "/en/courses/small/first/comments"
HTML = {"accept": "text/html,*/*"}
HTMX = {"hx-request": "true", "accept": "*/*"}


@dataclass
class Class:
    """Everyone who may come, each with a browser."""

    app: FastAPI
    stranger: httpx.AsyncClient
    ada: httpx.AsyncClient
    bob: httpx.AsyncClient
    teacher: httpx.AsyncClient
    names: dict[str, Account]


@pytest.fixture
async def room(app: FastAPI) -> AsyncIterator[Class]:
    db = app.state.db
    ada = await an_account(db, name="Ada Byron")
    bob = await an_account(db, name="Bob Moore")
    teacher = await an_account(db, Role.instructor, name="Tea Cher")
    async with (
        browser(app) as stranger,
        await signed_in(app, ada) as of_ada,
        await signed_in(app, bob) as of_bob,
        await signed_in(app, teacher) as of_teacher,
    ):
        yield Class(app, stranger, of_ada, of_bob, of_teacher, {"ada": ada, "bob": bob, "teacher": teacher})


async def write(client: httpx.AsyncClient, text: str = "Hello", **fields: str) -> str:
    """Send the form as a browser without a script does: the id of the comment."""
    response = await client.post(PLACE, data={"text": text, "key": f"k{text[:20]}", **fields}, headers=HTML)
    assert response.status_code == 303, response.text
    found = re.fullmatch(r"/en/comments/([0-9a-f]+)#c-\1", response.headers["location"])
    assert found
    return found[1]


async def test_a_stranger_reads_and_is_asked_to_sign_in_before_writing(room: Class) -> None:
    await write(room.ada, "**Hello** everyone")

    whole = await room.stranger.get(PLACE, headers=HTML)
    part = await room.stranger.get(PLACE, headers=HTMX)

    for response in (whole, part):
        assert "<strong>Hello</strong> everyone" in response.text
        assert "Sign in to write" in response.text
        assert response.headers["cache-control"] == "no-store"
        assert "set-cookie" not in response.headers
    assert "<!doctype html>" in whole.text
    assert "<html" not in part.text


async def test_a_stranger_who_writes_all_the_same_gets_the_text_back(room: Class) -> None:
    response = await room.stranger.post(PLACE, data={"text": "Nearly <lost>"}, headers=HTML)

    assert response.status_code == 401
    assert "Nearly &lt;lost&gt;</textarea>" in response.text
    assert "Sign in first." in response.text


async def test_where_mail_goes_out_only_who_has_confirmed_an_address_writes(room: Class) -> None:
    settings = room.app.state.settings
    room.app.state.settings = settings.model_copy(update={"smtp_url": "smtp://mail.example.org"})
    async with room.app.state.db.writing() as session:
        await session.execute(update(Account).values(email_confirmed_at=None))
    refused = await room.ada.post(PLACE, data={"text": "Not yet"}, headers=HTMX)
    async with room.app.state.db.writing() as session:
        await session.execute(update(Account).values(email_confirmed_at=now()))

    assert refused.status_code == 422
    assert "Confirm your e-mail address first" in refused.text
    assert "Not yet</textarea>" in refused.text
    assert await write(room.ada, "Now")


async def test_sent_twice_it_is_there_once(room: Class) -> None:
    first = await write(room.ada)
    again = await write(room.ada)

    assert first == again
    assert (await room.stranger.get(PLACE)).text.count('class="thread"') == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Write something first."),
        (" \u200b\n", "Write something first."),
        ("x" * 10_001, "10,001 characters"),
        ("a\0b", "cannot be stored"),
    ],
)
@pytest.mark.parametrize("headers", [HTML, HTMX])
async def test_what_cannot_be_taken_comes_back_with_the_reason_beside_it(
    room: Class, text: str, said: str, headers: dict[str, str]
) -> None:
    response = await room.ada.post(PLACE, data={"text": text, "key": "k"}, headers=headers)

    assert response.status_code == 422
    assert said in response.text
    assert 'aria-invalid="true"' in response.text
    assert 'value="k"' in response.text
    assert 'class="thread"' not in (await room.ada.get(PLACE)).text


async def test_bytes_that_are_no_text_are_refused(room: Class) -> None:
    for body in (b"text=%ff%fe", b"text=%ed%a0%80", b"text=a%00"):
        headers = HTML | {"content-type": "application/x-www-form-urlencoded"}
        response = await room.ada.post(PLACE, content=body, headers=headers)
        assert response.status_code == 422
        assert "cannot be stored" in response.text
    assert (await room.ada.post(PLACE, content=b"\xff" * 20, headers=HTML)).status_code == 422


async def test_a_new_account_that_writes_much_is_told_how_long_to_wait(room: Class) -> None:
    for n in range(4):
        await write(room.ada, f"Number {n}")
    response = await room.ada.post(PLACE, data={"text": "Number 5"}, headers=HTMX)

    assert response.status_code == 429
    assert re.search(r"Wait \d+ seconds|Wait 1 minute", response.text)
    assert "Number 5</textarea>" in response.text


async def test_a_cell_has_comments_of_its_own(room: Class) -> None:
    await write(room.ada, "About the cell", cell="hello")

    assert "About the cell" not in (await room.stranger.get(PLACE)).text
    assert "(1)</a>" in (await room.stranger.get(PLACE)).text, "the lesson leads there"
    assert "About the cell" in (await room.stranger.get(f"{PLACE}?cell=hello")).text
    assert (await room.stranger.get(f"{PLACE}?cell=none")).status_code == 404
    assert (await room.ada.post(PLACE, data={"text": "x", "cell": "none"})).status_code == 404
    lesson = (await room.stranger.get("/en/courses/small/first")).text
    assert f'href="{PLACE}?cell=hello"' in lesson


async def test_a_reply_leads_to_its_thread(room: Class) -> None:
    root = await write(room.ada)
    form = await room.bob.get(f"/en/comments/{root}/reply", headers=HTML)
    assert f'name="thread" value="{root}"' in form.text
    reply = await write(room.bob, "Yes", thread=root)

    page = await room.stranger.get(f"/en/comments/{reply}", headers=HTML)
    assert f'id="t-{root}"' in page.text
    assert f'asked-for" id="c-{reply}"' in page.text


async def test_htmx_follows_to_the_thread_as_a_fragment(room: Class) -> None:
    answer = await room.ada.post(PLACE, data={"text": "Hi", "key": "k"}, headers=HTMX)
    fragment = await room.ada.get(answer.headers["location"].partition("#")[0], headers=HTMX)

    assert fragment.text.strip().startswith("<article")
    assert "<html" not in fragment.text


async def test_an_edit_shows_at_once_and_keeps_its_past_for_author_and_instructors(room: Class) -> None:
    root = await write(room.ada, "First words")
    assert "First words</textarea>" in (await room.ada.get(f"/en/comments/{root}/ask/edit")).text
    response = await room.ada.post(f"/en/comments/{root}", data={"text": "Second words", "edits": "0"})
    assert response.status_code == 303

    page = (await room.stranger.get(f"/en/comments/{root}")).text
    assert "Second words" in page
    assert "First words" not in page
    assert "edited" in page
    for client, status in ((room.ada, 200), (room.teacher, 200), (room.bob, 404), (room.stranger, 401)):
        past = await client.get(f"/en/comments/{root}/history", headers={"accept": "application/json"})
        assert past.status_code == status
        assert ("First words" in past.text) is (status == 200)

    late = await room.ada.post(f"/en/comments/{root}", data={"text": "Third <words>", "edits": "0"}, headers=HTML)
    assert late.status_code == 422
    assert "changed elsewhere" in late.text
    assert "Third &lt;words&gt;</textarea>" in late.text
    assert 'name="edits" value="1"' in late.text


async def test_deleting_leads_back_to_the_list_or_to_the_stub(room: Class) -> None:
    root, other = await write(room.ada, "One"), await write(room.ada, "Two")
    await write(room.bob, "Yes", thread=root)

    assert (await room.ada.get(f"/en/comments/{other}/ask/delete")).status_code == 200
    alone = await room.ada.post(f"/en/comments/{other}/delete", headers=HTML)
    assert (alone.status_code, alone.headers["location"]) == (303, PLACE)
    answered = await room.ada.post(f"/en/comments/{root}/delete", headers=HTML)
    assert answered.headers["location"].startswith(f"/en/comments/{root}")
    assert "This comment was deleted." in (await room.stranger.get(f"/en/comments/{root}")).text
    assert (await room.stranger.get(f"/en/comments/{other}")).status_code == 404


async def test_a_reaction_is_a_button_that_says_whether_it_is_pressed(room: Class) -> None:
    root = await write(room.ada)
    reacted = await room.bob.post(f"/en/comments/{root}/reactions", data={"add": "helpful"}, headers=HTMX)
    assert reacted.headers["location"] == f"/en/comments/{root}?alone=1#c-{root}"
    alone = await room.bob.get(f"/en/comments/{root}?alone=1", headers=HTMX)
    assert alone.text.strip().startswith('<div class="comment')
    assert re.search(r'name="remove" value="helpful" aria-pressed="true".*Helpful.*>1<', alone.text)
    assert "aria-pressed" not in (await room.stranger.get(f"/en/comments/{root}")).text

    for fields, status in (({"add": "evil"}, 422), ({}, 422), ({"remove": "helpful"}, 303)):
        response = await room.bob.post(f"/en/comments/{root}/reactions", data=fields)
        assert response.status_code == status
    assert (await room.ada.post(f"/en/comments/{root}/reactions", data={"add": "helpful"})).status_code == 403


async def test_the_first_comment_that_helps_somebody_is_worth_xp_once(room: Class) -> None:
    for text in ("One", "Two"):
        comment = await write(room.ada, text)
        for _ in range(2):
            await room.bob.post(f"/en/comments/{comment}/reactions", data={"add": "helpful"})
    async with room.app.state.db.session() as session:
        ledger = room.app.state.progress.ledger
        awarded = await ledger.award(session, room.names["ada"].learner_id, [])

    assert awarded.xp >= 20
    assert awarded.xp_before == awarded.xp
    async with room.app.state.db.session() as session:
        known = await read_known(session, room.names["ada"].learner_id)
    assert set(known.by_kind["helpful"]) == {"first"}


async def test_a_report_reaches_the_instructors(room: Class) -> None:
    root = await write(room.ada, "Buy my book")
    assert (await room.bob.get(f"/en/comments/{root}/ask/report")).status_code == 200
    empty = await room.bob.post(f"/en/comments/{root}/report", data={"text": " "}, headers=HTMX)
    assert (empty.status_code, "Say why" in empty.text) == (422, True)
    assert (await room.bob.post(f"/en/comments/{root}/report", data={"text": "An <ad>"})).status_code == 200

    queue = (await room.teacher.get("/en/moderation?kind=reported")).text
    assert "Reported: An &lt;ad&gt;" in queue
    assert "An &lt;ad&gt;" not in (await room.stranger.get(f"/en/comments/{root}")).text


async def test_instructors_hide_show_pin_and_answer(room: Class) -> None:
    root = await write(room.ada, "A question")
    reply = await write(room.bob, "The answer", thread=root)

    async def order(comment: str, verb: str, **more: str) -> int:
        sent = await room.teacher.post(f"/en/comments/{comment}/moderate", data={"verb": verb, **more}, headers=HTML)
        return sent.status_code

    async def seen() -> str:
        return (await room.stranger.get(f"/en/comments/{root}")).text

    assert await order(root, "pin") == await order(reply, "answer") == 303
    assert "pinned" in await seen()
    assert "answers the question" in await seen()
    assert await order(reply, "hide") == 422, "it needs a reason"
    assert await order(reply, "hide", text="Not <nice>") == 303
    assert "The answer" not in await seen()
    assert "Hidden by an instructor: Not &lt;nice&gt;" in (await room.bob.get(f"/en/comments/{reply}")).text
    assert (await room.stranger.get(f"/en/comments/{reply}")).status_code == 404
    assert await order(reply, "show", queue="newest") == 303
    assert "The answer" in await seen()
    assert await order(root, "dance") == 422
    row = await room.teacher.post(
        f"/en/comments/{root}/moderate", data={"verb": "hide", "text": "why", "queue": "newest"}, headers=HTMX
    )
    assert row.text.strip().startswith("<li")
    assert "This comment is not shown." in await seen(), "a stub stays: somebody has answered"
    assert "A question" not in await seen()


async def test_a_reply_to_what_is_hidden_shows_nothing_of_it(room: Class) -> None:
    root = await write(room.ada, "A secret")
    await write(room.bob, "Yes", thread=root)
    await room.teacher.post(f"/en/comments/{root}/moderate", data={"verb": "hide", "text": "secret"})

    late = await room.bob.post(PLACE, data={"text": "Late words", "thread": root}, headers=HTML)

    assert late.status_code == 422
    assert "Late words</textarea>" in late.text
    assert "A secret" not in late.text
    assert (await room.bob.get(f"/en/comments/{root}/reply", headers=HTML)).status_code == 404


ORDERS = [
    ("POST", "", {"text": "changed", "edits": "0"}),
    ("POST", "/delete", {}),
    ("POST", "/moderate", {"verb": "hide", "text": "why"}),
    ("POST", "/moderate", {"verb": "pin"}),
    ("GET", "/ask/edit", {}),
    ("GET", "/ask/delete", {}),
    ("GET", "/ask/hide", {}),
    ("GET", "/history", {}),
]


@pytest.mark.parametrize(("method", "path", "fields"), ORDERS)
async def test_what_others_wrote_can_be_changed_by_neither_stranger_nor_learner(
    room: Class, method: str, path: str, fields: dict[str, str]
) -> None:
    root = await write(room.ada, "Mine")

    for client, statuses in ((room.stranger, {401}), (room.bob, {403, 404})):
        headers = {"accept": "application/json"}
        response = await client.request(method, f"/en/comments/{root}{path}", data=fields or None, headers=headers)
        assert response.status_code in statuses
    assert "Mine" in (await room.stranger.get(f"/en/comments/{root}")).text


async def test_an_instructor_moderates_and_does_not_speak_for_others(room: Class) -> None:
    root = await write(room.ada, "Mine")

    changed = await room.teacher.post(f"/en/comments/{root}", data={"text": "changed", "edits": "0"})
    deleted = await room.teacher.post(f"/en/comments/{root}/delete")

    assert (changed.status_code, deleted.status_code) == (403, 403)


async def test_the_menu_of_instructors_leads_to_the_queue(room: Class) -> None:
    for client, there in ((room.stranger, False), (room.ada, False), (room.teacher, True)):
        assert ('href="/en/moderation"' in (await client.get("/en/account-menu")).text) is there


async def test_the_queue_is_for_instructors(room: Class) -> None:
    as_program = {"accept": "application/json"}
    for client, status in ((room.stranger, 401), (room.ada, 403), (room.teacher, 200)):
        assert (await client.get("/en/moderation", headers=as_program)).status_code == status


async def test_a_comment_that_is_held_is_seen_by_its_author_and_instructors_only(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"hold_first_comments": 1}))
    async with app.router.lifespan_context(app):
        others = await signed_in(app), await signed_in(app, Role.instructor)
        async with browser(app) as stranger, others[0] as ada, others[1] as teacher:
            comment = await write(ada, "My first")
            assert "Waits for an instructor" in (await ada.get(PLACE)).text
            assert "My first" not in (await stranger.get(PLACE)).text
            assert (await stranger.get(f"/en/comments/{comment}")).status_code == 404
            assert "My first" in (await teacher.get("/en/moderation")).text
            await teacher.post(f"/en/comments/{comment}/moderate", data={"verb": "show", "queue": "held"})
            assert "My first" in (await stranger.get(PLACE)).text
            assert "My first" not in (await teacher.get("/en/moderation")).text


async def test_mentions_lead_to_what_somebody_wrote(room: Class) -> None:
    bob = room.names["bob"].handle
    await write(room.bob, "Here I am")
    await write(room.ada, f"@{bob} and @nobody-there")

    page = (await room.stranger.get(PLACE)).text
    assert f'href="/people/{bob}"' in page
    assert 'href="/people/nobody-there"' not in page
    onward = await room.stranger.get(f"/people/{bob}", headers={"accept-language": "ko"})
    assert onward.headers["location"] == f"/ko/people/{bob}/comments"
    assert "Here I am" in (await room.stranger.get(f"/en/people/{bob}/comments")).text
    assert (await room.stranger.get("/en/people/nobody-there/comments")).status_code == 404


async def test_handles_are_suggested_to_who_is_signed_in(room: Class) -> None:
    await write(room.bob, "Here I am")
    address = "/en/comment-handles?lesson=small/first&begins=b"

    assert [one["name"] for one in (await room.ada.get(address)).json()] == ["Bob Moore"]
    assert (await room.stranger.get(address)).status_code == 401
    assert (await room.ada.get("/en/comment-handles?lesson=small/first&begins=%25")).status_code == 422


async def test_a_name_is_text(room: Class) -> None:
    async with room.app.state.db.writing() as session:
        await session.execute(update(Account).values(name="<script>x</script>"))
    root = await write(room.ada)

    for path in (PLACE, f"/en/comments/{root}", "/en/moderation?kind=newest"):
        page = (await room.teacher.get(path)).text
        assert "<script>x" not in page
        assert html.escape("<script>x</script>") in page


async def test_a_deleted_account_is_called_so(room: Class) -> None:
    await write(room.ada, "Still here")
    async with room.app.state.db.writing() as session:
        await session.execute(update(Comment).values(author_id=None))

    page = (await room.stranger.get(PLACE)).text
    assert "deleted account" in page
    assert "Still here" in page


async def test_a_comment_on_a_lesson_that_is_gone_can_be_read(room: Class) -> None:
    root = await write(room.ada, "Still here")
    async with room.app.state.db.writing() as session:
        await session.execute(update(Comment).values(lesson="gone/away"))

    assert "Still here" in (await room.stranger.get(f"/en/comments/{root}")).text
    assert (await room.ada.get(f"/en/comments/{root}/ask/edit")).status_code == 200


@pytest.mark.parametrize(
    "address", ["/en/comments/none", "/en/comments/%00", "/en/comments/%F0%9F%98%80", "/en/comments/x?after=%00"]
)
async def test_what_is_no_comment_is_not_found(room: Class, address: str) -> None:
    assert (await room.stranger.get(address, headers=HTML)).status_code in (404, 422)


async def test_times_are_words_in_the_language_with_the_moment_beside(room: Class) -> None:
    root = await write(room.ada)
    english, korean = [(await room.stranger.get(f"/{lang}/comments/{root}")).text for lang in ("en", "ko")]

    assert re.search(r'<time datetime="20\d\d-[^"]+\+00:00"[^>]*>\d seconds? ago</time>', english)
    assert re.search(r"<time [^>]*>\d초 전</time>", korean)
