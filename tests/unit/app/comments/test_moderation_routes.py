"""What instructors do with comments, and the comments of one person, over HTTP."""

from __future__ import annotations

import re

from app.accounts.models import Role
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client
from tests.factories.comments import COMMENTS_URL, HTML, HTMX, Classroom, post_comment


async def test_a_report_reaches_the_instructors(room: Classroom) -> None:
    root = await post_comment(room.ada, "Buy my book")
    assert (await room.bob.get(f"/en/comments/{root}/forms/report")).status_code == 200
    empty = await room.bob.post(f"/en/comments/{root}/report", data={"text": " "}, headers=HTMX)
    assert (empty.status_code, "Give a short reason" in empty.text) == (422, True)
    assert (await room.bob.post(f"/en/comments/{root}/report", data={"text": "An <ad>"})).status_code == 200

    queue = (await room.teacher.get("/en/moderation?kind=reported")).text
    assert "Reported: An &lt;ad&gt;" in queue
    assert ">The first lesson</a>" in queue, "instructors read where it was written, in the lesson's own words"
    assert "An &lt;ad&gt;" not in (await room.stranger.get(f"/en/comments/{root}")).text


async def test_the_queue_opens_where_something_waits_and_counts_it(room: Classroom) -> None:
    empty = (await room.teacher.get("/en/moderation")).text
    assert re.search(r'kind=held" aria-current="page">Held</a>', empty)
    root = await post_comment(room.ada, "Buy my book")
    await room.bob.post(f"/en/comments/{root}/report", data={"text": "An ad"}, headers=HTMX)

    opened = (await room.teacher.get("/en/moderation")).text
    chosen = (await room.teacher.get("/en/moderation?kind=held")).text

    assert re.search(r'kind=reported" aria-current="page">Reported <b>1</b></a>', opened)
    assert "Buy my book" in opened
    assert re.search(r'kind=held" aria-current="page">Held</a>', chosen)
    assert "Buy my book" not in chosen
    assert "Reported <b>1</b>" in chosen


async def test_instructors_hide_show_pin_and_answer(room: Classroom) -> None:
    root = await post_comment(room.ada, "A question")
    reply = await post_comment(room.bob, "The answer", thread=root)

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
    assert "This comment is hidden." in await seen(), "a stub stays: somebody has answered"
    assert "A question" not in await seen()


async def test_an_instructor_moderates_and_does_not_speak_for_others(room: Classroom) -> None:
    root = await post_comment(room.ada, "Mine")

    changed = await room.teacher.post(f"/en/comments/{root}", data={"text": "changed", "edits": "0"})
    deleted = await room.teacher.post(f"/en/comments/{root}/delete")

    assert (changed.status_code, deleted.status_code) == (403, 403)


async def test_the_menu_of_instructors_leads_to_the_queue(room: Classroom) -> None:
    for client, there in ((room.stranger, False), (room.ada, False), (room.teacher, True)):
        assert ('href="/en/moderation"' in (await client.get("/en/account-menu")).text) is there


async def test_the_queue_is_for_instructors(room: Classroom) -> None:
    as_program = {"accept": "application/json"}
    for client, status in ((room.stranger, 401), (room.ada, 403), (room.teacher, 200)):
        assert (await client.get("/en/moderation", headers=as_program)).status_code == status


async def test_a_comment_that_is_held_is_seen_by_its_author_and_instructors_only(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"hold_first_comments": 1}))
    async with app.router.lifespan_context(app):
        others = await signed_in_browser(app), await signed_in_browser(app, Role.instructor)
        async with browser_client(app) as stranger, others[0] as ada, others[1] as teacher:
            comment = await post_comment(ada, "My first")
            assert "Waiting for an instructor" in (await ada.get(COMMENTS_URL)).text
            assert "My first" not in (await stranger.get(COMMENTS_URL)).text
            assert (await stranger.get(f"/en/comments/{comment}")).status_code == 404
            assert "My first" in (await teacher.get("/en/moderation")).text
            await teacher.post(f"/en/comments/{comment}/moderate", data={"verb": "show", "queue": "held"})
            assert "My first" in (await stranger.get(COMMENTS_URL)).text
            assert "My first" not in (await teacher.get("/en/moderation")).text


async def test_mentions_lead_to_what_somebody_wrote(room: Classroom) -> None:
    bob = room.names["bob"].handle
    await post_comment(room.bob, "Here I am")
    await post_comment(room.ada, f"@{bob} and @nobody-there")

    page = (await room.stranger.get(COMMENTS_URL)).text
    assert f'href="/learners/{bob}/comments"' in page
    assert 'href="/learners/nobody-there/comments"' not in page
    onward = await room.stranger.get(f"/learners/{bob}/comments", headers={"accept-language": "ko"})
    assert onward.headers["location"] == f"/ko/learners/{bob}/comments"
    assert "Here I am" in (await room.stranger.get(f"/en/learners/{bob}/comments")).text
    assert (await room.stranger.get("/en/learners/nobody-there/comments")).status_code == 404


async def test_nobody_learns_the_name_of_who_has_written_nothing(room: Classroom) -> None:
    ada = f"/en/learners/{room.names['ada'].handle}/comments"
    for client, status in ((room.stranger, 404), (room.bob, 404), (room.ada, 200), (room.teacher, 200)):
        answer = await client.get(ada)
        assert (answer.status_code, "Ada Byron" in answer.text) == (status, status == 200)
    await post_comment(room.ada, "Here I am")
    assert (await room.stranger.get(ada)).status_code == 200


async def test_a_stub_does_not_say_whose_it_was(room: Classroom) -> None:
    root = await post_comment(room.ada, "Oops")
    await post_comment(room.bob, "A reply", thread=root)
    assert "Ada Byron" in (await room.stranger.get(f"/en/comments/{root}")).text
    await room.ada.post(f"/en/comments/{root}/delete", headers=HTML)
    page = (await room.stranger.get(f"/en/comments/{root}")).text
    assert ("This comment was deleted." in page, "Ada Byron" in page) == (True, False)


async def test_an_instructor_approves_what_was_read_and_nothing_that_came_in_its_place(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"hold_first_comments": 1}))
    async with (
        app.router.lifespan_context(app),
        await signed_in_browser(app) as newcomer,
        await signed_in_browser(app, Role.instructor) as teacher,
    ):
        held = await post_comment(newcomer, "A question")
        read = (await teacher.get("/en/moderation")).text
        edits = re.findall(r'name="edits" value="([0-9]+)"', read)
        assert edits == ["0"]
        changed = await newcomer.post(f"/en/comments/{held}", data={"text": "Buy my book", "edits": "0"})
        assert changed.status_code == 303
        order = {"verb": "show", "queue": "held", "edits": edits[0]}
        refused = await teacher.post(f"/en/comments/{held}/moderate", data=order, headers=HTML)
        assert (refused.status_code, "Read it again" in refused.text) == (422, True)
        row = await teacher.post(f"/en/comments/{held}/moderate", data=order, headers=HTMX)
        assert (row.status_code, "Read it again" in row.text, "Buy my book" in row.text) == (200, True, True)
        approved = await teacher.post(f"/en/comments/{held}/moderate", data={**order, "edits": "1"}, headers=HTML)
        assert approved.status_code == 303
