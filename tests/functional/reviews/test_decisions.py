"""Reviewing over HTTP: the list, comments on lines, and decisions."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from app.accounts.models import Account, Role
from app.db import now
from app.exercises.models import Review, ReviewComment, ReviewState
from app.exercises.review_decisions import MAX_COMMENT_LENGTH, MAX_COMMENTS
from app.groups.models import GroupDeadline, GroupRole
from app.notifications.models import Notification
from tests.factories.classroom import CODE, EARNED, PANEL, Classroom, decision
from tests.factories.course import LESSON
from tests.factories.xss_payloads import XSS_PAYLOADS


async def test_code_is_returned_with_comments_and_then_accepted(room: Classroom) -> None:
    first = await room.submitted()
    queue = (await room.teacher.get(f"/en/groups/{room.group}/reviews")).text
    assert first in queue
    assert "Double it" in queue

    page = (await room.teacher.get(first)).text
    assert "return x + x" in page
    assert "printed &lt;b&gt;4&lt;/b&gt;" in page
    said = await room.teacher.post(f"{first}/comments", data={"line": "2", "text": "Why not `2 * x`?"})
    assert said.headers["location"] == f"{first}#code-line-2"
    hidden = (await room.learner.get(PANEL)).text
    review = first.rpartition("/")[2]
    assert "Why not" not in (await room.learner.get(f"{PANEL}/reviews/{review}")).text
    assert 'data-passed="no"' in hidden
    assert "Show the solution" not in hidden
    returned = await decision(room.teacher, first, decision="changes", remark="Almost **there**.")
    assert returned.status_code == 303

    panel = (await room.learner.get(PANEL)).text
    assert "Grace asks for changes." in panel
    assert "Ask for a review" not in panel
    shown = (await room.learner.get(f"{PANEL}/reviews/{review}")).text
    assert re.search(r'line-2" class="has-comments">.*return x \+ x.*Why not <code>2 \* x</code>\?', shown, re.DOTALL)
    assert "Almost <strong>there</strong>." in shown
    assert await room.earned() == set()

    second = await room.submitted("def double(x):\n    return 2 * x")
    assert first in (await room.teacher.get(second)).text
    assert (await decision(room.teacher, second, decision="accept")).status_code == 303
    assert await room.earned() == EARNED
    panel = (await room.learner.get(PANEL)).text
    assert "Grace accepted your code." in panel
    assert 'data-passed="yes"' in panel
    assert "Show the solution" in panel


async def test_the_learner_is_notified_of_the_decision(room: Classroom) -> None:
    path = await room.submitted()
    await decision(room.teacher, path, decision="accept", remark="Well *done*.")

    page = (await room.learner.get("/en/notifications")).text
    assert "Grace reviewed your code" in page
    assert "Your code was accepted. Well done." in page
    [told] = [row for row in await room.rows(Notification) if row.account_id == room.ada.id]
    opened = await room.learner.get(f"/en/notifications/{told.id}")
    assert opened.headers["location"].endswith("/en/courses/small/first#exercise-double")


async def test_all_reviews_that_the_staff_sees_are_downloaded_as_csv(
    room: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = f"/en/groups/{room.group}/reviews"
    assert f"{group}.csv" not in (await room.teacher.get(group)).text, "there are none"
    monkeypatch.setattr("app.groups.reviews._EXPORT_BATCH", 2)
    mate, classmate = await room.person("=1+1")
    await room.join(mate)
    returned = await room.submitted()
    await decision(room.teacher, returned, decision="changes", remark="+ a comment, and\nmore")
    accepted = await room.submitted("def double(x):\n    return 2 * x")
    await decision(room.teacher, accepted, decision="accept")
    await room.passes(mate.learner_id)
    await room.ask(classmate)
    waiting = (await room.rows(Review))[-1].id
    withdrawn = {**(await room.rows(Review))[-1].__dict__, "id": "z", "run_id": "z", "state": ReviewState.withdrawn}
    await room.store(Review(**{name: value for name, value in withdrawn.items() if not name.startswith("_")}))

    assert f"{group}.csv" in (await room.teacher.get(group)).text
    file = await room.teacher.get(f"{group}.csv")
    head, *rows = csv.reader(io.StringIO(file.text.removeprefix("\ufeff")))
    assert head[5:] == ["Submitted (UTC)", "Decided (UTC)", "Reviewer", "Remark", "Address"]
    about = ["The first lesson", "Double it"]
    ada, other = [room.ada.name, room.ada.handle], ["'=1+1", mate.handle]
    assert [row[:5] + row[7:] for row in rows] == [
        [*ada, *about, "Changes requested", "Grace", "'+ a comment, and\nmore", f"http://test{returned}"],
        [*ada, *about, "Accepted", "Grace", "", f"http://test{accepted}"],
        [*other, *about, "Waiting", "", "", f"http://test{room.path(waiting)}"],
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", row[5]) for row in rows)
    assert [bool(row[6]) for row in rows] == [True, True, False]


async def test_the_list_counts_what_waits_in_the_chosen_lesson(room: Classroom) -> None:
    await room.submitted()
    row: dict[str, Any] = {
        "account_id": room.ada.id,
        "group_id": room.group,
        "exercise": "e",
        "code": "x",
        "output": "",
    }
    row |= {"output": "", "results": "[]", "remark": "", "state": ReviewState.waiting, "requested_at": now()}
    await room.store(*(Review(id=f"{n}", lesson="small/second", run_id=f"r{n}", **row) for n in range(2)))

    async def heading(lesson: str) -> str:
        page = (await room.teacher.get(f"/en/groups/{room.group}/reviews", params={"lesson": lesson})).text
        found = re.search(r'id="waiting-title">Waiting <span class="fine">(\d+)<', page)
        assert found is not None
        return found[1]

    assert [await heading(lesson) for lesson in ("", LESSON, "small/second", "small/none")] == ["3", "1", "2", "0"]


async def test_what_waits_is_sorted_by_its_headings(room: Classroom) -> None:
    await room.submitted()
    row: dict[str, Any] = {
        "account_id": room.ada.id,
        "group_id": room.group,
        "exercise": "e",
        "code": "x",
        "output": "",
    }
    row |= {"results": "[]", "remark": "", "state": ReviewState.waiting, "requested_at": now() - timedelta(days=1)}
    await room.store(Review(id="1", lesson="small/zzz", run_id="r1", **row))

    async def order(**query: str) -> list[str]:
        page = (await room.teacher.get(f"/en/groups/{room.group}/reviews", params=query)).text
        return ["zzz" if "zzz" in title else "" for title in re.findall(r'<th scope="row".*?</th>', page)]

    for query in ({}, {"sort": "2"}, {"sort": "0", "reverse": "true"}):
        assert await order(**query) == ["zzz", ""], query
    for query in ({"sort": "2", "reverse": "true"}, {"sort": "0"}):
        assert await order(**query) == ["", "zzz"], query


async def test_only_the_staff_of_the_group_sees_and_decides(room: Classroom) -> None:
    path = await room.submitted()
    other = await room.add_group("Other")
    stranger, rival = await room.person("Rival", Role.instructor)
    await room.join(stranger, GroupRole.instructor, other)
    await room.join(room.ada, group=other)
    mate, classmate = await room.person("Mate")
    await room.join(mate)
    review = path.rpartition("/")[2]
    comment = "0" * 32

    for browser in (rival, classmate, room.learner):
        assert (await browser.get(f"/en/groups/{room.group}/reviews")).status_code == 404
        assert (await browser.get(f"/en/groups/{room.group}/reviews.csv")).status_code == 404
        assert (await browser.get(path)).status_code == 404
        for way, fields in (
            ("", {"decision": "accept"}),
            ("/comments", {"line": "1", "text": "x"}),
            (f"/comments/{comment}/remove", {}),
        ):
            assert (await browser.post(f"{path}{way}", data=fields)).status_code == 404
    for way in ("", "/comments"):
        forged = await rival.post(f"{room.path(review, other)}{way}", data={"decision": "accept", "line": "1"})
        assert forged.status_code == 404
    assert (await rival.get(room.path(review, other))).status_code == 404
    assert [row.state for row in await room.rows(Review)] == [ReviewState.waiting]
    assert await room.earned() == set()


async def test_assistants_review_and_nobody_reviews_their_own_code(room: Classroom) -> None:
    path = await room.submitted()
    helper, assistant = await room.person("Helper")
    await room.join(helper, GroupRole.assistant)
    await room.change(update(Account).where(Account.id == room.ada.id).values(role=Role.admin))
    admin = (await room.person("Admin", Role.admin))[1]
    assert (await admin.get(path)).status_code == 200

    own = await room.learner.post(path, data={"decision": "accept"})
    assert (own.status_code, "cannot review your own code" in own.text) == (403, True)
    assert (await decision(assistant, path, decision="accept")).status_code == 303
    assert await room.earned() == EARNED


@pytest.mark.parametrize("line", ["0", "3", "-1", "1.5", "", "x", "٢", "9" * 400, "\0"])
async def test_a_comment_is_on_a_line_of_the_code(room: Classroom, line: str) -> None:
    path = await room.submitted()

    refused = await room.teacher.post(f"{path}/comments", data={"line": line, "text": "Keep me", "remark": "Me too"})
    assert refused.status_code == 422
    assert "Choose a line from 1 to 2." in refused.text
    assert "Keep me</textarea>" in refused.text
    assert "Me too</textarea>" in refused.text
    assert await room.rows(ReviewComment) == []


async def test_texts_are_limited_and_what_was_typed_is_shown_again(room: Classroom) -> None:
    path = await room.submitted()
    long = "x" * (MAX_COMMENT_LENGTH + 1)

    for fields in ({"text": long}, {"text": " \n"}, {"text": "a\0b"}):
        refused = await room.teacher.post(f"{path}/comments", data={"line": "1"} | fields)
        assert refused.status_code == 422
    nothing = await decision(room.teacher, path, decision="changes")
    assert (nothing.status_code, "Say what to change" in nothing.text) == (422, True)
    kept = await room.teacher.post(f"{path}/comments", data={"line": "1", "text": "Good", "remark": "Not sent yet"})
    assert (kept.status_code, "Not sent yet</textarea>" in kept.text) == (200, True)
    author: dict[str, Any] = {"review_id": path.rpartition("/")[2], "author_id": room.grace.id, "created_at": now()}
    await room.store(*(ReviewComment(id=f"{n}", line=1, source="x", **author) for n in range(MAX_COMMENTS - 1)))
    full = await room.teacher.post(f"{path}/comments", data={"line": "1", "text": "one more"})
    assert (full.status_code, "that is the limit" in full.text) == (422, True)


async def test_a_comment_that_is_typed_when_deciding_is_stored_too(room: Classroom) -> None:
    path = await room.submitted()

    assert (await decision(room.teacher, path, decision="changes", line="2", text="Here")).status_code == 303
    assert [(row.line, row.source) for row in await room.rows(ReviewComment)] == [(2, "Here")]


async def test_code_output_and_comments_are_never_markup(room: Classroom) -> None:
    path = await room.submitted("\n".join(XSS_PAYLOADS))
    for number, payload in enumerate(XSS_PAYLOADS[: MAX_COMMENTS - 1], 1):
        await room.teacher.post(f"{path}/comments", data={"line": f"{number}", "text": payload})
    staff = (await room.teacher.get(path)).text
    await decision(room.teacher, path, decision="changes", remark="\n\n".join(XSS_PAYLOADS[:20]))
    review = path.rpartition("/")[2]
    learner = (await room.learner.get(f"{PANEL}/reviews/{review}")).text

    for page in (staff, learner):
        shown = page[page.index('<ol class="reviewed-code"') :].partition("</ol>")[0]
        assert not re.search(r"<(script|img|iframe|svg|object|embed|style|meta|base|math)\b", shown)
        assert not re.search(r"<[^>]*\s(on\w+|hx-\w+|data-hx-\w+)=", shown)


async def test_of_two_decisions_at_once_one_counts_and_the_other_keeps_its_text(room: Classroom) -> None:
    path = await room.submitted()
    other, colleague = await room.person("Alan", Role.instructor)
    await room.join(other, GroupRole.instructor)

    answers = await asyncio.gather(
        decision(room.teacher, path, decision="accept", remark="Fine by me"),
        decision(colleague, path, decision="changes", remark="Not for me"),
    )
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    [loser] = [answer for answer in answers if answer.status_code == 409]
    assert "decided this review in the meantime" in loser.text
    assert ("Fine by me</textarea>" in loser.text) or ("Not for me</textarea>" in loser.text)
    assert 'name="text"' not in loser.text, "nothing can be written any more, and nothing was"
    [review] = await room.rows(Review)
    assert (await room.earned() == EARNED) is (review.state == ReviewState.accepted)
    assert len([row for row in await room.rows(Notification) if row.kind == "review"]) == 1


@pytest.mark.parametrize("action", ["", "/comments", "/comments/1/remove"])
async def test_text_typed_for_a_learner_who_left_meanwhile_is_shown_again(room: Classroom, action: str) -> None:
    path = await room.submitted()
    await room.learner.post(f"/en/groups/{room.group}/leave")

    typed = {"line": "1", "text": "Why <b>add</b>?", "remark": "Use \u202e *", "decision": "changes"}
    late = await room.teacher.post(f"{path}{action}", data=typed)
    assert late.status_code == 404
    assert "This review does not exist, or it was withdrawn." in late.text
    assert "Why &lt;b&gt;add&lt;/b&gt;?" in late.text
    assert "Use [U+202E] *" in late.text
    assert "Ada" not in late.text
    assert (await room.teacher.post(f"{path}{action}", data={"line": "1"})).status_code == 404
    _, stranger = await room.person("Eve", Role.instructor)
    assert "Why" not in (await stranger.post(f"{path}{action}", data=typed)).text


async def test_a_decision_that_is_sent_twice_is_made_once(room: Classroom) -> None:
    path = await room.submitted()
    fields = {"decision": "accept", "remark": "Well done", "line": "2", "text": "Neat"}

    answers = await asyncio.gather(*(decision(room.teacher, path, **fields) for _ in range(3)))
    answers.append(await decision(room.teacher, path, **fields))  # the browser went back to the page before
    assert answers[0].headers["location"] == answers[-1].headers["location"]
    assert {answer.status_code for answer in answers} == {303}
    assert len(await room.rows(ReviewComment)) == 1
    assert len([row for row in await room.rows(Notification) if row.kind == "review"]) == 1

    for change in ({"decision": "changes"}, {"remark": "Not so well"}, {"text": "Clumsy"}):
        other = await decision(room.teacher, path, **fields | change)
        assert (other.status_code, "You have already decided this review" in other.text) == (409, True)
        assert f"{(fields | change)['remark']}</textarea>" in other.text
    [review] = await room.rows(Review)
    assert (review.state, review.remark) == (ReviewState.accepted, "Well done")


async def test_nobody_decides_over_a_comment_that_they_have_not_seen(room: Classroom) -> None:
    path = await room.submitted()
    other, colleague = await room.person("Alan", Role.instructor)
    await room.join(other, GroupRole.instructor)
    await colleague.post(f"{path}/comments", data={"line": "1", "text": "Wait: this is wrong"})

    blind = await room.teacher.post(path, data={"decision": "accept", "remark": "Fine", "seen": ""})
    assert (blind.status_code, "Wait: this is wrong" in blind.text, "Fine</textarea>" in blind.text) == (
        409,
        True,
        True,
    )
    [comment] = await room.rows(ReviewComment)
    await room.teacher.post(f"{path}/comments/{comment.id}/remove")
    assert len(await room.rows(ReviewComment)) == 1  # it is not theirs
    await colleague.post(f"{path}/comments/{comment.id}/remove")
    assert await room.rows(ReviewComment) == []


async def test_removing_a_comment_keeps_what_was_typed(room: Classroom) -> None:
    path = await room.submitted()
    await room.teacher.post(f"{path}/comments", data={"line": "1", "text": "Wrong line"})
    [comment] = await room.rows(ReviewComment)
    page = (await room.teacher.get(path)).text
    remove = re.search(r'<button[^>]* form="review-form" formaction="([^"]*/remove)" formnovalidate>', page)
    assert remove is not None
    typed = {"line": "2", "text": "Half a", "remark": "Almost"}

    for _again in range(2):  # the second time, the page is reloaded
        page = (await room.teacher.post(remove[1], data=typed)).text
        assert ("Wrong line" not in page, "Half a</textarea>" in page, "Almost</textarea>" in page) == (True,) * 3
        assert re.search(r'name="line" value="2" checked', page)
    await room.learner.post(f"{PANEL}/reviews/{comment.review_id}/withdraw")
    late = await room.teacher.post(remove[1], data=typed)
    assert (late.status_code, "Almost</textarea>" in late.text, "Half a</textarea>" in late.text) == (409, True, True)


async def test_a_comment_that_is_sent_twice_is_stored_once(room: Classroom) -> None:
    path = await room.submitted()
    said = {"line": "1", "text": "Name it better", "remark": "Not sent yet"}

    pages = await asyncio.gather(*(room.teacher.post(f"{path}/comments", data=said) for _ in range(3)))
    assert {(page.status_code, "Not sent yet</textarea>" in page.text) for page in pages} == {(200, True)}
    assert len(await room.rows(ReviewComment)) == 1
    await decision(room.teacher, path, decision="changes", **said)  # the browser went back to the page before
    for other in ({"line": "2"}, {"text": "Name it shorter"}):
        again = await room.submitted(f"{CODE}# {other}")
        await room.teacher.post(f"{again}/comments", data=said)
        await room.teacher.post(f"{again}/comments", data=said | other)
        await decision(room.teacher, again, decision="changes")
    assert len(await room.rows(ReviewComment)) == 5


async def test_withdrawing_and_deciding_at_once_end_in_one_of_the_two(room: Classroom) -> None:
    path = await room.submitted()
    review = path.rpartition("/")[2]

    decided, _ = await asyncio.gather(
        room.teacher.post(path, data={"decision": "accept"}),
        room.learner.post(f"{PANEL}/reviews/{review}/withdraw"),
    )
    [row] = await room.rows(Review)
    accepted = decided.status_code == 303
    assert row.state == (ReviewState.accepted if accepted else ReviewState.withdrawn)
    assert (await room.earned() == EARNED) is accepted


@pytest.mark.parametrize(("days_left", "state"), [(1, "passed"), (-1, "passed late")])
async def test_a_deadline_says_what_counts_for_it_when_changes_are_requested(
    room: Classroom, days_left: int, state: str
) -> None:
    due = now() + timedelta(days=days_left)
    await room.store(GroupDeadline(group_id=room.group, lesson=LESSON, exercise="double", due_at=due))
    await decision(room.teacher, await room.submitted(), decision="changes", remark="Shorter")

    for page in (f"/en/groups/{room.group}/me", f"/en/groups/{room.group}/learners/{room.ada.id}"):
        browser = room.learner if page.endswith("/me") else room.teacher
        section = (await browser.get(page)).text.partition('id="deadlines-title"')[2].partition("</section>")[0]
        assert f"<span>{state}</span>" in section
