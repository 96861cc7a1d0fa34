"""Asking for reviews, over HTTP: which groups review, what is earned, and what becomes of code that waits."""

from __future__ import annotations

import asyncio
import re
import secrets
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import update

from app.accounts.merge import MERGERS, merge_visitor
from app.accounts.models import Account, Role
from app.db import now
from app.exercises.models import Review, ReviewComment, ReviewState
from app.exercises.reviews import MAX_LINES, MAX_WITHDRAWN
from app.groups.models import Group, GroupMember, GroupRole
from app.main import create_app
from app.notifications.models import Notification
from app.progress.events import LearningEvent
from app.progress.models import LedgerEntry
from app.progress.service import PROGRESS
from app.settings import Settings
from tests.factories.classroom import CODE, EARNED, PANEL, Classroom, decision
from tests.factories.course import LESSON
from tests.factories.judged_lesson import FACTOR, SHAPE, add_exercise
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.smtp_server import SmtpMailbox, serve_smtp


async def check_passing_code(room: Classroom, supervisor: ScriptedSupervisor) -> None:
    asked = await room.learner.post(f"{PANEL}/submissions", json={"code": CODE, "key": secrets.token_hex(16)})
    run = await supervisor.run(asked.json()["id"])
    await supervisor.emit(run, kind="started")
    for check in (FACTOR, SHAPE):
        await supervisor.emit(run, kind="check", name=check, outcome="passed")
    await supervisor.finish(run, "ok")
    async with asyncio.timeout(60), room.learner.stream("GET", f"/runs/{asked.json()['id']}/stream") as stream:
        async for _line in stream.aiter_lines():
            pass


async def test_a_pass_earns_its_checks_at_once_and_the_exercise_when_it_is_accepted(
    room: Classroom, supervisor: ScriptedSupervisor
) -> None:
    await check_passing_code(room, supervisor)

    async def kinds() -> list[str]:
        return sorted(entry.kind for entry in await room.rows(LedgerEntry) if entry.kind in ("check", "exercise"))

    assert await kinds() == ["check", "check"]
    await room.ask()
    path = room.path((await room.rows(Review))[0].id)
    await decision(room.teacher, path, decision="accept")
    assert await kinds() == ["check", "check", "exercise"]


async def test_without_a_group_that_reviews_the_checks_decide(room: Classroom, supervisor: ScriptedSupervisor) -> None:
    ended = update(Group).values(ends_at=now() - timedelta(days=1))
    await room.change(ended)
    await check_passing_code(room, supervisor)

    assert await room.earned() == EARNED
    panel = (await room.learner.get(PANEL)).text
    assert 'data-passed="yes"' in panel
    assert "Ask for a review" not in panel
    assert "No one can review this exercise for you right now. Check your code" in await room.ask()


async def test_what_a_visitor_passed_stays_passed_and_can_still_be_reviewed(room: Classroom) -> None:
    visitor = secrets.token_hex(16)
    await room.passes(visitor)
    async with room.db.writing() as session:
        event = LearningEvent("exercise", f"{LESSON}#double", 20)
        await PROGRESS.get(room.app).ledger.enter(session, visitor, [event])
        ada = await session.get_one(Account, room.ada.id)
        await merge_visitor(session, visitor, ada, MERGERS.get(room.app))

    assert await room.earned() == EARNED
    assert 'data-passed="yes"' in (await room.learner.get(PANEL)).text
    await room.ask()
    [review] = await room.rows(Review)
    assert (await decision(room.teacher, room.path(review.id), decision="accept")).status_code == 303
    assert await room.earned() == EARNED
    assert len([row for row in await room.rows(LedgerEntry) if row.kind == "exercise"]) == 1


async def test_the_staff_is_notified_once_until_it_looks_at_what_waits(room: Classroom) -> None:
    helper, assistant = await room.person("Helper")
    await room.join(helper, GroupRole.assistant)
    former, _ = await room.person("Former")  # no longer an instructor on the site
    await room.join(former, GroupRole.instructor)
    queue = f"/en/groups/{room.group}/reviews"

    async def told() -> dict[str, bool]:
        """Who is notified of code to review, and whether they have read it."""
        rows = [row for row in await room.rows(Notification) if row.kind == "review-request"]
        return {row.account_id: row.read_at is not None for row in rows}

    for name in ("Bea", "Cyd"):
        learner, browser = await room.person(name)
        await room.join(learner)
        await room.passes(learner.learner_id)
        await room.ask(browser)
    assert await told() == {room.grace.id: False, helper.id: False}
    page = (await room.teacher.get("/en/notifications")).text
    assert "Code is waiting for your review" in page
    assert "2 submissions are waiting." in page
    [opened] = re.findall(r'href="(/en/notifications/[0-9a-z]+)"', page)
    assert (await room.teacher.get(opened)).headers["location"] == queue
    assert await told() == {room.grace.id: True, helper.id: False}

    await room.ask(browser)  # it waits already
    assert await told() == {room.grace.id: True, helper.id: False}
    await assistant.get(queue)
    await room.submitted()
    assert await told() == {room.grace.id: False, helper.id: False}
    for row in await room.rows(Review):
        await room.teacher.post(room.path(row.id), data={"decision": "accept"})
    page = (await assistant.get("/en/notifications")).text
    assert ("This is no longer available." in page, "Autumn" in page) == (True, False)  # nothing waits any more


async def test_reviewers_are_emailed_with_a_link_to_what_waits(settings: Settings) -> None:
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        mail = {"smtp_url": f"smtp://{address}?tls=off", "mail_from": "Lockstep <l@example.org>"}
        app = create_app(settings.model_copy(update={**mail, "public_url": "http://test"}))
        add_exercise(app, reviewed=True)
        async with app.router.lifespan_context(app), AsyncExitStack() as running, asyncio.timeout(60):
            room = await Classroom(app, running).open()
            path = await room.submitted()
            text = (await postbox.first_mail()).get_body(("plain",))
            assert text is not None
            words = text.get_content()
            queue = f"/en/groups/{room.group}/reviews"
            assert "1 submission is waiting." in words
            [opened] = re.findall(r"http://test(/en/notifications/\S+|/en/groups/\S+)", words)
            answer = await room.teacher.get(opened, follow_redirects=True)
            assert (answer.url.path, path in answer.text) == (queue, True)
    assert postbox.recipients == [room.grace.email]


async def test_who_no_longer_reviews_reads_nothing_of_what_waits(room: Classroom) -> None:
    await room.submitted()
    await room.change(update(GroupMember).where(GroupMember.account_id == room.grace.id).values(role="learner"))

    page = (await room.teacher.get("/en/notifications")).text
    assert ("This is no longer available." in page, "Autumn" in page) == (True, False)


async def test_what_waits_can_be_withdrawn_and_submitted_again(room: Classroom) -> None:
    path = await room.submitted()
    await room.teacher.post(f"{path}/comments", data={"line": "1", "text": "Begun"})
    [review] = await room.rows(Review)

    panel = (await room.learner.post(f"{PANEL}/reviews/{review.id}/withdraw")).text
    assert "Ask for a review" in panel
    assert path not in (await room.teacher.get(f"/en/groups/{room.group}/reviews")).text
    late = await room.teacher.post(f"{path}/comments", data={"line": "1", "text": "too late"})
    assert late.status_code == 409
    assert "withdrew this code" in late.text
    assert "too late</textarea>" in late.text
    assert "return x + x" not in late.text
    assert "printed &lt;b&gt;4" not in late.text
    assert (await room.teacher.get(path)).status_code == 404

    await room.ask()
    await room.ask()
    assert [row.id for row in await room.rows(Review)] == [review.id]
    assert "Begun" in (await room.teacher.get(path)).text
    await decision(room.teacher, path, decision="changes")
    refused = (await room.learner.post(f"{PANEL}/reviews/{review.id}/withdraw")).text
    assert "reviewed in the meantime" in refused
    assert "This code was already reviewed" in await room.ask()


async def test_pressing_twice_asks_once_and_accepting_twice_earns_once(room: Classroom) -> None:
    await room.passes(room.ada.learner_id)
    await asyncio.gather(*(room.ask() for _ in range(4)))
    [review] = await room.rows(Review)

    path = room.path(review.id)
    answers = await asyncio.gather(*(room.teacher.post(path, data={"decision": "accept"}) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {303}
    assert await room.earned() == EARNED
    assert "already accepted" in await room.ask()


async def test_comments_of_one_group_are_not_shown_to_another(room: Classroom) -> None:
    path = await room.submitted()
    await room.teacher.post(f"{path}/comments", data={"line": "1", "text": "Among us"})
    [review] = await room.rows(Review)
    await room.learner.post(f"{PANEL}/reviews/{review.id}/withdraw")
    spring = await room.add_group("Spring")
    alan, colleague = await room.person("Alan", Role.instructor)
    await room.join(alan, GroupRole.instructor, spring)
    await room.join(room.ada, group=spring)

    await room.ask(group=spring)
    page = (await colleague.get(room.path(review.id, spring))).text
    assert "return x + x" in page
    assert "Among us" not in page
    assert (await room.teacher.get(path)).status_code == 404


async def test_leaving_the_group_withdraws_what_waits_and_hides_it_from_the_staff(room: Classroom) -> None:
    path = await room.submitted()
    await room.learner.post(f"/en/groups/{room.group}/leave")

    assert [row.state for row in await room.rows(Review)] == [ReviewState.withdrawn]
    assert (await room.teacher.get(path)).status_code == 404
    panel = (await room.learner.get(PANEL)).text
    assert "No one can review this exercise for you right now." in panel
    assert 'data-passed="no"' in panel  # nothing was earned: a check earns it


async def test_what_waits_when_the_group_ends_can_be_decided_or_checked_again(room: Classroom) -> None:
    path = await room.submitted()
    await room.change(update(Group).values(ends_at=now() - timedelta(days=1)))

    panel = (await room.learner.get(PANEL)).text
    assert "Your code is waiting for a review." in panel
    assert "You no longer have to wait: check your code once more" in panel
    assert "No one can review" not in panel
    assert (await decision(room.teacher, path, decision="changes", remark="Shorter.")).status_code == 303
    panel = (await room.learner.get(PANEL)).text
    assert "Grace asks for changes." in panel
    assert "No one can review this exercise for you right now. Check your code once more" in panel


async def test_deleting_the_group_leaves_the_learner_what_was_decided(room: Classroom) -> None:
    decided = await room.submitted()
    await decision(room.teacher, decided, decision="changes", remark="Shorter.")
    await room.submitted("def double(x): return 2 * x")
    gone = await room.teacher.post(f"/en/groups/{room.group}/settings/delete", data={"name": "Autumn"})
    assert gone.status_code == 303

    panel = (await room.learner.get(PANEL)).text
    assert "Grace asks for changes." in panel
    assert "waiting for a review" not in panel
    assert "Shorter." in (await room.learner.get(f"{PANEL}/reviews/{decided.rpartition('/')[2]}")).text


async def test_a_learner_reads_and_withdraws_only_their_own(room: Classroom) -> None:
    path = await room.submitted()
    review = path.rpartition("/")[2]
    _, other = await room.person("Eve")

    assert (await other.get(f"{PANEL}/reviews/{review}")).status_code == 404
    refused = await other.post(f"{PANEL}/reviews/{review}/withdraw")
    assert "does not exist" in refused.text
    assert [row.state for row in await room.rows(Review)] == [ReviewState.waiting]
    for forged in ("1", "x" * 64, "%00"):
        assert (await room.learner.get(f"{PANEL}/reviews/{forged}")).status_code == 404


async def test_a_learner_asks_only_a_group_of_theirs_that_reviews(room: Classroom) -> None:
    await room.passes(room.ada.learner_id)
    other = await room.add_group("Other")
    for group in (other, "0" * 32, "' OR 1=1", "\0"):
        assert "No one can review this exercise for you right now" in await room.ask(group=group)
    await room.join(room.ada, group=other)
    assert "No one can review this exercise" in await room.ask(group=other)  # it has no staff
    assert await room.rows(Review) == []
    eve, browser = await room.person("Eve")
    await room.join(eve)
    assert "Pass the checks first" in await room.ask(browser)  # others' submissions are not hers


async def test_long_code_is_refused(room: Classroom) -> None:
    await room.passes(room.ada.learner_id, "\n" * MAX_LINES + "x = 1")
    assert "Shorten it" in await room.ask()


async def test_a_learner_can_ask_however_often_code_was_returned_or_withdrawn(room: Classroom) -> None:
    facts: dict[str, Any] = {"account_id": room.ada.id, "group_id": room.group, "lesson": LESSON, "exercise": "double"}
    facts |= {"code": "x", "output": "", "results": "[]", "requested_at": now(), "remark": ""}
    for state in (ReviewState.changes_requested, ReviewState.withdrawn):
        ids = [f"{state.name[0]}{n:02}" for n in range(MAX_WITHDRAWN + 2)]
        await room.store(*(Review(id=one, run_id=one, state=state, **facts) for one in ids))

    await room.submitted()
    kept = [row.id for row in await room.rows(Review) if row.state == ReviewState.withdrawn]
    assert kept == ids[-MAX_WITHDRAWN:]
    assert len(await room.rows(Review)) == 2 * MAX_WITHDRAWN + 3


async def test_reviews_are_exported_and_go_with_the_account(room: Classroom) -> None:
    path = await room.submitted()
    await decision(room.teacher, path, decision="changes", line="1", text="Name it better", remark="See line 1")

    async def exported(browser: httpx.AsyncClient) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await browser.get("/en/settings/data/export")).json()["reviews"]
        return rows

    mine = {row["kind"]: row for row in await exported(room.learner)}
    assert (mine["review"]["code"], mine["review"]["remark"]) == (CODE.rstrip(), "See line 1")
    assert mine["received_comment"]["source"] == "Name it better"
    theirs = {row["kind"]: row for row in await exported(room.teacher)}
    assert (theirs["written_comment"]["source"], theirs["decision"]["remark"]) == ("Name it better", "See line 1")

    async with room.db.writing() as session:
        grace = await session.get_one(Account, room.grace.id)
        await session.delete(grace)
    shown = (await room.learner.get(f"{PANEL}/reviews/{path.rpartition('/')[2]}")).text
    assert "Name it better" in shown
    assert "Someone" in shown
    assert "Your instructor asks for changes." in (await room.learner.get(PANEL)).text
    _, admin = await room.person("Admin", Role.admin)
    late = await admin.post(path, data={"decision": "accept"})
    assert "Someone decided this review in the meantime" in late.text
    async with room.db.writing() as session:
        await session.delete(await session.get_one(Account, room.ada.id))
    assert (await room.rows(Review), await room.rows(ReviewComment)) == ([], [])
