"""Comments over HTTP: with and without scripts, for a visitor, a learner, another learner and an instructor."""

from __future__ import annotations

import html
import re

import httpx
import pytest
from sqlalchemy import update

from app.accounts.models import Account
from app.comments import markdown, queries
from app.comments.models import Comment
from app.comments.rendering import render_html
from app.db import now
from app.progress.ledger import load_learner_events
from tests.factories.comments import COMMENTS_URL, HTML, HTMX, Classroom, make_comment, post_comment


async def test_a_stranger_reads_and_is_asked_to_sign_in_before_writing(room: Classroom) -> None:
    await post_comment(room.ada, "**Hello** everyone")

    whole = await room.stranger.get(COMMENTS_URL, headers=HTML)
    part = await room.stranger.get(COMMENTS_URL, headers=HTMX)

    for response in (whole, part):
        assert "<strong>Hello</strong> everyone" in response.text
        assert "Sign in to comment" in response.text
        assert response.headers["cache-control"] == "no-store"
        assert "set-cookie" not in response.headers
    assert "<!doctype html>" in whole.text
    assert "<html" not in part.text


async def test_a_stranger_who_writes_all_the_same_gets_the_text_back(room: Classroom) -> None:
    response = await room.stranger.post(COMMENTS_URL, data={"text": "Nearly <lost>"}, headers=HTML)

    assert response.status_code == 401
    assert "Nearly &lt;lost&gt;</textarea>" in response.text
    assert "Sign in first." in response.text


async def test_if_email_is_sent_only_people_with_a_confirmed_address_write(room: Classroom) -> None:
    settings = room.app.state.settings
    room.app.state.settings = settings.model_copy(update={"smtp_url": "smtp://mail.example.org"})
    async with room.app.state.db.writing() as session:
        await session.execute(update(Account).values(email_confirmed_at=None))
    refused = await room.ada.post(COMMENTS_URL, data={"text": "Not yet"}, headers=HTMX)
    async with room.app.state.db.writing() as session:
        await session.execute(update(Account).values(email_confirmed_at=now()))

    assert refused.status_code == 422
    assert "Confirm your email address first" in refused.text
    assert "Not yet</textarea>" in refused.text
    assert await post_comment(room.ada, "Now")


async def test_sent_twice_it_is_there_once(room: Classroom) -> None:
    first = await post_comment(room.ada)
    again = await post_comment(room.ada)

    assert first == again
    assert (await room.stranger.get(COMMENTS_URL)).text.count('class="thread"') == 1


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
    room: Classroom, text: str, said: str, headers: dict[str, str]
) -> None:
    response = await room.ada.post(COMMENTS_URL, data={"text": text, "key": "k"}, headers=headers)

    assert response.status_code == 422
    assert said in response.text
    assert 'aria-invalid="true"' in response.text
    assert 'value="k"' in response.text
    assert 'class="thread"' not in (await room.ada.get(COMMENTS_URL)).text


async def test_bytes_that_are_no_text_are_refused(room: Classroom) -> None:
    for body in (b"text=%ff%fe", b"text=%ed%a0%80", b"text=a%00"):
        headers = HTML | {"content-type": "application/x-www-form-urlencoded"}
        response = await room.ada.post(COMMENTS_URL, content=body, headers=headers)
        assert response.status_code == 422
        assert "cannot be stored" in response.text
    assert (await room.ada.post(COMMENTS_URL, content=b"\xff" * 20, headers={**HTML, **headers})).status_code == 422


@pytest.mark.parametrize("thread", ["%FF", "%ED%A0%80", "%00"])
async def test_a_thread_whose_id_is_no_text_is_refused(room: Classroom, thread: str) -> None:
    form = {**HTML, "content-type": "application/x-www-form-urlencoded"}
    refused = await room.ada.post(COMMENTS_URL, content=f"text=My+words&thread={thread}", headers=form)

    assert refused.status_code == 422
    assert "My words" in refused.text


async def test_a_new_account_that_writes_much_is_told_how_long_to_wait(room: Classroom) -> None:
    for n in range(4):
        await post_comment(room.ada, f"Number {n}")
    response = await room.ada.post(COMMENTS_URL, data={"text": "Number 5"}, headers=HTMX)

    assert response.status_code == 429
    assert re.search(r"Wait \d+ seconds|Wait 1 minute", response.text)
    assert "Number 5</textarea>" in response.text


async def test_a_cell_has_comments_of_its_own(room: Classroom) -> None:
    await post_comment(room.ada, "About the cell", cell="hello")

    assert "About the cell" not in (await room.stranger.get(COMMENTS_URL)).text
    assert "(1)</a>" in (await room.stranger.get(COMMENTS_URL)).text, "the lesson leads there"
    assert "About the cell" in (await room.stranger.get(f"{COMMENTS_URL}?cell=hello")).text
    assert (await room.stranger.get(f"{COMMENTS_URL}?cell=none")).status_code == 404
    assert (await room.ada.post(COMMENTS_URL, data={"text": "x", "cell": "none"})).status_code == 404
    lesson = (await room.stranger.get("/en/courses/small/first")).text
    assert f'href="{COMMENTS_URL}?cell=hello"' in lesson


async def test_a_reply_leads_to_its_thread(room: Classroom) -> None:
    root = await post_comment(room.ada)
    form = await room.bob.get(f"/en/comments/{root}/reply", headers=HTML)
    assert f'name="thread" value="{root}"' in form.text
    reply = await post_comment(room.bob, "Yes", thread=root)

    page = await room.stranger.get(f"/en/comments/{reply}", headers=HTML)
    assert f'id="t-{root}"' in page.text
    assert f'asked-for" id="c-{reply}"' in page.text


async def test_htmx_follows_to_the_thread_as_a_fragment(room: Classroom) -> None:
    answer = await room.ada.post(COMMENTS_URL, data={"text": "Hi", "key": "k"}, headers=HTMX)
    fragment = await room.ada.get(answer.headers["location"].partition("#")[0], headers=HTMX)

    assert fragment.text.strip().startswith("<article")
    assert "<html" not in fragment.text


async def test_an_edit_shows_at_once_and_keeps_its_past_for_author_and_instructors(room: Classroom) -> None:
    root = await post_comment(room.ada, "First words")
    assert "First words</textarea>" in (await room.ada.get(f"/en/comments/{root}/forms/edit")).text
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


async def test_deleting_leads_back_to_the_list_or_to_the_stub(room: Classroom) -> None:
    root, other = await post_comment(room.ada, "One"), await post_comment(room.ada, "Two")
    await post_comment(room.bob, "Yes", thread=root)

    assert (await room.ada.get(f"/en/comments/{other}/forms/delete")).status_code == 200
    alone = await room.ada.post(f"/en/comments/{other}/delete", headers=HTML)
    assert (alone.status_code, alone.headers["location"]) == (303, COMMENTS_URL)
    answered = await room.ada.post(f"/en/comments/{root}/delete", headers=HTML)
    assert answered.headers["location"].startswith(f"/en/comments/{root}")
    assert "This comment was deleted." in (await room.stranger.get(f"/en/comments/{root}")).text
    assert (await room.stranger.get(f"/en/comments/{other}")).status_code == 404


async def test_a_reaction_is_a_button_that_says_whether_it_is_pressed(room: Classroom) -> None:
    root = await post_comment(room.ada)
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


async def test_the_first_comment_that_helps_somebody_is_worth_xp_once(room: Classroom) -> None:
    for text in ("One", "Two"):
        comment = await post_comment(room.ada, text)
        for _ in range(2):
            await room.bob.post(f"/en/comments/{comment}/reactions", data={"add": "helpful"})
    async with room.app.state.db.session() as session:
        ledger = room.app.state.progress.ledger
        awarded = await ledger.award(session, room.names["ada"].learner_id, [])

    assert awarded.xp >= 20
    assert awarded.entries == ()
    async with room.app.state.db.session() as session:
        known = await load_learner_events(session, room.names["ada"].learner_id)
    assert set(known.by_kind["helpful"]) == {"first"}


async def test_a_reply_to_what_is_hidden_shows_nothing_of_it(room: Classroom) -> None:
    root = await post_comment(room.ada, "A secret")
    await post_comment(room.bob, "Yes", thread=root)
    await room.teacher.post(f"/en/comments/{root}/moderate", data={"verb": "hide", "text": "secret"})

    late = await room.bob.post(COMMENTS_URL, data={"text": "Late words", "thread": root}, headers=HTML)

    assert late.status_code == 422
    assert "Late words</textarea>" in late.text
    assert "A secret" not in late.text
    assert (await room.bob.get(f"/en/comments/{root}/reply", headers=HTML)).status_code == 404


ORDERS = [
    ("POST", "", {"text": "changed", "edits": "0"}),
    ("POST", "/delete", {}),
    ("POST", "/moderate", {"verb": "hide", "text": "why"}),
    ("POST", "/moderate", {"verb": "pin"}),
    ("GET", "/forms/edit", {}),
    ("GET", "/forms/delete", {}),
    ("GET", "/forms/hide", {}),
    ("GET", "/history", {}),
]


@pytest.mark.parametrize(("method", "path", "fields"), ORDERS)
async def test_what_others_wrote_can_be_changed_by_neither_stranger_nor_learner(
    room: Classroom, method: str, path: str, fields: dict[str, str]
) -> None:
    root = await post_comment(room.ada, "Mine")

    for client, statuses in ((room.stranger, {401}), (room.bob, {403, 404})):
        headers = {"accept": "application/json"}
        response = await client.request(method, f"/en/comments/{root}{path}", data=fields or None, headers=headers)
        assert response.status_code in statuses
    assert "Mine" in (await room.stranger.get(f"/en/comments/{root}")).text


async def test_handles_are_suggested_to_signed_in_people(room: Classroom) -> None:
    await post_comment(room.bob, "Here I am")
    address = "/en/comment-handles?lesson=small/first&begins=b"

    assert [one["name"] for one in (await room.ada.get(address)).json()] == ["Bob Moore"]
    assert (await room.stranger.get(address)).status_code == 401
    assert (await room.ada.get("/en/comment-handles?lesson=small/first&begins=%25")).status_code == 422


async def test_a_name_is_text(room: Classroom) -> None:
    async with room.app.state.db.writing() as session:
        await session.execute(update(Account).values(name="<script>x</script>"))
    root = await post_comment(room.ada)

    for path in (COMMENTS_URL, f"/en/comments/{root}", "/en/moderation?kind=newest"):
        page = (await room.teacher.get(path)).text
        assert "<script>x" not in page
        assert html.escape("<script>x</script>") in page


async def test_a_deleted_account_is_called_so(room: Classroom) -> None:
    await post_comment(room.ada, "Still here")
    async with room.app.state.db.writing() as session:
        await session.execute(update(Comment).values(author_id=None))

    page = (await room.stranger.get(COMMENTS_URL)).text
    assert "deleted account" in page
    assert "Still here" in page


async def test_a_comment_on_a_lesson_that_is_gone_can_be_read(room: Classroom) -> None:
    root = await post_comment(room.ada, "Still here")
    async with room.app.state.db.writing() as session:
        await session.execute(update(Comment).values(lesson="gone/away"))

    assert "Still here" in (await room.stranger.get(f"/en/comments/{root}")).text
    assert (await room.ada.get(f"/en/comments/{root}/forms/edit")).status_code == 200


@pytest.mark.parametrize(
    "address", ["/en/comments/none", "/en/comments/%00", "/en/comments/%F0%9F%98%80", "/en/comments/x?after=%00"]
)
async def test_what_is_no_comment_is_not_found(room: Classroom, address: str) -> None:
    assert (await room.stranger.get(address, headers=HTML)).status_code in (404, 422)


async def test_times_are_words_in_the_language_with_the_moment_beside(room: Classroom) -> None:
    root = await post_comment(room.ada)
    english, korean = [(await room.stranger.get(f"/{lang}/comments/{root}")).text for lang in ("en", "ko")]

    assert re.search(r'<time datetime="20\d\d-[^"]+\+00:00"[^>]*>\d seconds? ago</time>', english)
    assert re.search(r"<time [^>]*>\d초 전</time>", korean)


async def test_the_number_of_comments_is_right_at_once_when_one_is_written_or_deleted(room: Classroom) -> None:
    def told(response: httpx.Response) -> list[str]:
        return re.findall(r'<p class="fine" id="comments-count" hx-swap-oob="true">(\d+) comment', response.text)

    by_htmx = {"hx-request": "true"}
    first = await post_comment(room.ada, "First")
    written = await room.ada.post(
        COMMENTS_URL, data={"text": "Second", "key": "k"}, headers=by_htmx, follow_redirects=True
    )
    second = written.url.path.rpartition("/")[2]
    changed = await room.ada.get(f"/en/comments/{first}?alone=1", headers=by_htmx)
    gone = await room.ada.post(f"/en/comments/{first}/delete", headers=by_htmx)
    hidden = await room.teacher.post(
        f"/en/comments/{second}/moderate", data={"verb": "hide", "text": "No"}, headers=by_htmx, follow_redirects=True
    )
    shown = await room.teacher.get(f"/en/comments/{second}")

    assert [told(answer) for answer in (written, changed, gone, hidden, shown)] == [["2"], [], ["1"], ["0"], []]


async def test_a_hundred_comments_of_code_that_grows_make_a_page_of_ordinary_size(room: Classroom) -> None:
    source = "```python\n" + "\n".join(["1+" * 400] * 12) + "\n```"
    async with room.app.state.db.writing() as session:
        text = await render_html(session, source)
        for number in range(100):
            comment = make_comment(room.names["ada"], number, f"{number - number % 5:04}" if number % 5 else None)
            comment.source, comment.html, comment.renderer_version = source, text, markdown.RENDERER_VERSION
            session.add(comment)
            await session.flush()

    page = (await room.stranger.get(COMMENTS_URL, headers=HTML)).text

    assert len(page.encode()) < 2 * queries.MAX_PAGE_BYTES
    seen, further = set(re.findall(r'id="t-(\d+)"', page)), re.search(r'href="([^"]*before=[^"]*)"', page)
    while further:
        more = (await room.stranger.get(html.unescape(further[1]), headers=HTMX)).text
        assert len(more.encode()) < 2 * queries.MAX_PAGE_BYTES
        seen |= set(re.findall(r'id="t-(\d+)"', more))
        further = re.search(r'href="([^"]*before=[^"]*)"', more)
    assert seen == {f"{number:04}" for number in range(0, 100, 5)}
