"""The reports of a group: every number of every table, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.accounts.models import Account
from app.comments.models import Comment
from app.db import Database, now, sortable_id
from app.exercises.models import Submission
from app.exercises.verdicts import CheckResult, dump_results
from app.groups.cell_details import describe_errors, describe_limits, describe_wrong_answers
from app.groups.learner_lists import list_stopped, list_stuck
from app.groups.learners import (
    LearnerLesson,
    LearnerOrder,
    LessonStanding,
    export_learners,
    lesson_state,
    list_learners,
    report_learner,
)
from app.groups.models import Group, GroupDeadline, GroupMember, GroupRole
from app.groups.report_table import (
    DEFAULT_PERIOD,
    ReportCell,
    ReportTable,
    TableOrder,
    count_cell,
    report_window,
)
from app.groups.reports import REPORTS, ReportScope, count_learners
from app.lessons.catalog import Catalog
from app.progress.models import LessonProgress
from app.runs.models import RunEvent, RunState
from tests.factories.accounts import store_account
from tests.factories.exercises import write_exercise_lesson
from tests.factories.stored_runs import store_run

LESSON = "course/one"
NOW = now()
ERROR = '{{"kind":"error","seq":1,"at_ms":1,"name":"{}","value":"v","frames":[]}}'


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    write_exercise_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    return catalog


class Filled:
    """A group with learners, and somebody outside it who does the same."""

    def __init__(self, db: Database, catalog: Catalog) -> None:
        self.db, self.catalog = db, catalog
        self.people: dict[str, Account] = {}
        self.group = Group(
            id="a" * 32, name="G", course="course", time_zone="UTC", starts_at=None, ends_at=None, created_at=NOW
        )

    async def fill(self, *names: str) -> None:
        async with self.db.writing() as session:
            session.add(self.group)
        for name in (*names, "Outsider"):
            self.people[name] = await store_account(self.db, name=name)
        async with self.db.writing() as session:
            for name in names:
                role = GroupRole.assistant if name == "Assistant" else GroupRole.learner
                row = {"group_id": self.group.id, "account_id": self.people[name].id, "role": role, "joined_at": NOW}
                session.add(GroupMember(**row, code_shared_at=NOW - timedelta(days=9) if name == "Ada" else None))

    async def opened(self, name: str, days_ago: float, *, completed: bool = False, lesson: str = LESSON) -> None:
        at = NOW - timedelta(days=days_ago)
        row = {"learner_id": self.people[name].learner_id, "lesson": lesson, "started_at": at, "last_seen_at": at}
        async with self.db.writing() as session:
            session.add(LessonProgress(**row, completed_at=at if completed else None, anchor=""))

    async def tried(
        self,
        name: str,
        verdict: str,
        *results: CheckResult,
        days_ago: float = 1,
        code: str = "1",
        outcome: str = "ok",
        error: str = "",
        language: str = "en",
    ) -> None:
        facts: dict[str, Any] = {"learner_id": self.people[name].learner_id, "lesson": LESSON, "cell": "mean"}
        facts |= {
            "language": language,
            "code": code,
            "state": RunState.finished,
            "judgement": True,
            "created_at": NOW - timedelta(days=days_ago),
        }
        run = await store_run(self.db, **facts, outcome=outcome)
        if error:
            await self.raised(run, error)
        row = {"run_id": run, "idempotency_key": run, "verdict": verdict, "lesson_digest": "d"}
        async with self.db.writing() as session:
            session.add(Submission(**row, results=dump_results(results)))

    async def ran(
        self, name: str, outcome: str, *, cell: str = "make-data", error: str = "", days_ago: float = 1
    ) -> None:
        facts: dict[str, Any] = {"learner_id": self.people[name].learner_id, "lesson": LESSON, "cell": cell}
        facts |= {"code": f"of {name}", "state": RunState.finished, "created_at": NOW - timedelta(days=days_ago)}
        run = await store_run(self.db, **facts, outcome=outcome)
        if error:
            await self.raised(run, error)

    async def raised(self, run: str, error: str) -> None:
        async with self.db.writing() as session:
            session.add(RunEvent(run_id=run, seq=1, kind="error", at_ms=1, payload=ERROR.format(error)))

    async def asked(self, name: str, text: str, **facts: object) -> None:
        key = sortable_id()
        row: dict[str, Any] = {
            "id": key,
            "lesson": LESSON,
            "author_id": self.people[name].id,
            "idempotency_key": key,
            "source": text,
        }
        row |= {"html": "", "renderer_version": 1, "language": "en", "created_at": NOW, **facts}
        async with self.db.writing() as session:
            session.add(Comment(**row))

    @asynccontextmanager
    async def scope(self, period: str = "all", language: str = "en") -> AsyncIterator[ReportScope]:
        async with self.db.session() as session:
            yield ReportScope(session, self.group, report_window(self.group, period, NOW), self.catalog, language, NOW)

    async def report(self, name: str, period: str = "all") -> list[list[str]]:
        async with self.scope(period) as scope:
            return texts(await REPORTS[name](scope))


def texts(table: ReportTable) -> list[list[str]]:
    return [list(row) for row in list(table.csv_rows(ZoneInfo("UTC")))[1:]]


@pytest.fixture
async def filled(database: Database, catalog: Catalog) -> Filled:
    made = Filled(database, catalog)
    await made.fill("Ada", "Bob", "Cyd", "Assistant")
    return made


async def test_lessons_count_who_opened_completed_and_stopped(filled: Filled) -> None:
    await filled.opened("Ada", 20, completed=True)
    await filled.opened("Bob", 8)
    await filled.opened("Cyd", 2)
    for name in ("Assistant", "Outsider"):
        await filled.opened(name, 8)
    await filled.opened("Bob", 9, lesson="other/one")

    assert await filled.report("lessons") == [["The lesson", "3", "0", "1", "1"]]
    assert await filled.report("lessons", "7") == [["The lesson", "1", "0", "0", "0"]]
    filled.group.ends_at = NOW - timedelta(days=15)
    assert await filled.report("lessons") == [["The lesson", "1", "0", "1", "0"]]
    filled.group.ends_at = NOW - timedelta(days=21)
    assert await filled.report("lessons") == [["The lesson", "0", "0", "0", "0"]]


async def test_learners_stopped_only_in_the_lesson_that_they_opened_last(filled: Filled) -> None:
    gone = LESSON.partition("/")[0] + "/a-gone-one"
    await filled.opened("Ada", 9)
    await filled.opened("Ada", 8, lesson=gone)
    await filled.opened("Bob", 9)
    await filled.opened("Bob", 10, lesson=gone)
    await filled.opened("Cyd", 9)
    await filled.opened("Cyd", 9, lesson=gone)  # at the same moment: one of them counts

    assert await filled.report("lessons") == [["The lesson", "3", "0", "0", "1"]]
    async with filled.scope() as scope:
        assert await count_learners(scope) == (3, 3)
    async with filled.scope("7") as scope:
        assert await count_learners(scope) == (3, 0)


async def test_exercises_count_tries_and_who_is_stuck(filled: Filled) -> None:
    await filled.tried("Ada", "passed")
    await filled.tried("Bob", "failed", days_ago=2)
    await filled.tried("Bob", "passed")
    for _ in range(3):
        await filled.tried("Cyd", "failed")
        await filled.tried("Outsider", "failed")
    await filled.tried("Cyd", "lost")
    await filled.tried("Cyd", "failed")

    (row,) = await filled.report("exercises")
    assert row[1:] == ["3", "2", "1", "2.3", "1"]
    async with filled.scope() as scope:
        (cells,) = (await REPORTS["exercises"](scope)).rows
    assert [cell.raw for cell in cells[1:]] == [3, 2, 1, 2.3, 1]  # what the API has
    assert row[0].startswith("Your turn")


async def test_the_bars_of_all_columns_are_shares_of_all_learners(filled: Filled) -> None:
    await filled.opened("Ada", 20, completed=True)
    await filled.opened("Bob", 8)
    await filled.tried("Ada", "passed")
    for _ in range(3):
        await filled.tried("Bob", "failed", CheckResult("takes_one", 5, "failed"))
    await filled.ran("Ada", "error", error="ValueError")

    shares: dict[str, list[float | None]] = {}
    async with filled.scope() as scope:
        for name in ("lessons", "exercises", "errors"):
            (row,) = (await REPORTS[name](scope)).rows
            shares[name] = [cell.share for cell in row[1:]]
        for describe, cell in ((describe_errors, "make-data"), (describe_wrong_answers, "mean")):
            (row,) = (await describe(scope, LESSON, cell)).table.rows
            shares[cell] = [cell.share for cell in row[1:]]
    third = pytest.approx(1 / 3)
    assert shares["lessons"] == [pytest.approx(2 / 3), 0, third, third]
    assert shares["exercises"] == [pytest.approx(2 / 3), third, third, None, third]
    assert shares["errors"] == shares["make-data"] == shares["mean"] == [third, None]


async def test_errors_and_limits_are_counted_by_cell_and_learner(filled: Filled) -> None:
    await filled.ran("Ada", "error", error="ValueError")
    await filled.ran("Ada", "error", error="ValueError")
    await filled.ran("Bob", "error", error="KeyError")
    await filled.ran("Bob", "error", cell="mine-1")
    await filled.ran("Bob", "timeout")
    await filled.ran("Outsider", "memory")
    await filled.ran("Cyd", "interrupted")

    assert [row[1:] for row in await filled.report("errors")] == [["2", "3"]]
    (limit,) = await filled.report("limits")
    assert limit[1:] == ["Stopped: it ran longer than allowed", "1", "1"]
    async with filled.scope() as scope:
        assert (await REPORTS["limits"](scope)).numeric_columns == {2, 3}
        details = await describe_errors(scope, LESSON, "make-data")
    assert texts(details.table) == [["ValueError", "1", "2"], ["KeyError", "1", "1"]]
    ((kind, (sample,)),) = details.samples
    assert (kind, sample.name, sample.code, sample.message) == ("ValueError", "Ada", "of Ada", "v")


async def test_code_that_several_learners_share_leaves_room_for_other_code(filled: Filled) -> None:
    people = [(name, filled.people[name]) for name in ("Ada", "Bob", "Cyd")]
    async with filled.db.writing() as session:
        for _, account in people:
            (await session.get_one(GroupMember, (filled.group.id, account.id))).code_shared_at = NOW - timedelta(days=9)
    for number, (name, _) in enumerate(people):
        code = "pass" if number else "pass\n"
        await filled.tried(name, "failed", CheckResult("takes_one", 5, "failed"), code=code, days_ago=3 - number)
    await filled.tried("Ada", "failed", CheckResult("takes_one", 5, "failed"), code="return 2", days_ago=4)

    async with filled.scope() as scope:
        details = await describe_wrong_answers(scope, LESSON, "mean")
    assert texts(details.table)[0][1:] == ["3", "4"]
    ((_, samples),) = details.samples
    assert [(sample.name, sample.code) for sample in samples] == [("Cyd", "pass"), ("Ada", "return 2")]


async def test_runs_that_met_a_limit_have_names_and_code_behind_them(filled: Filled) -> None:
    for name in ("Ada", "Bob", "Bob", "Outsider", "Assistant"):
        await filled.ran(name, "timeout")
    await filled.ran("Ada", "memory", days_ago=10)
    await filled.ran("Ada", "error", error="ValueError")
    time, memory = "Stopped: it ran longer than allowed", "Stopped: it needed more memory than allowed"

    ada = filled.people["Ada"]
    async with filled.scope() as scope:
        details = await describe_limits(scope, LESSON, "make-data")
        (row, _) = (await REPORTS["limits"](scope)).rows
        member = await scope.session.get_one(GroupMember, (filled.group.id, ada.id))
        report = await report_learner(scope, ada, member)
    assert texts(details.table) == [[time, "2", "3"], [memory, "1", "1"]]
    ((kind, (sample,)),) = details.samples  # the run from before Ada agreed is not shown
    assert (kind, sample.name, sample.code) == (time, "Ada", "of Ada")
    assert row[0].link is not None
    assert row[0].link.parts["what"] == "limits"
    assert [(run.what, run.sample is not None) for run in report.limited_runs] == [(time, True), (memory, False)]
    assert [run.what for run in report.failed_runs] == ["ValueError"]


async def test_wrong_answers_are_counted_by_check_and_how_it_ended(filled: Filled) -> None:
    wrong = CheckResult("takes_one", 5, "failed", "It got 3.")
    await filled.tried("Ada", "failed", CheckResult("is_the_mean", 5, "passed"), wrong, code="theirs")
    await filled.tried("Bob", "failed", CheckResult("is_the_mean", 5, "error", "secret"), wrong)

    async with filled.scope() as scope:
        details = await describe_wrong_answers(scope, LESSON, "mean")
    rows = texts(details.table)
    assert [row[1:] for row in rows] == [["2", "2"], ["1", "1"]]
    assert rows[0][0].endswith(": wrong result")
    ((_, (sample,)),) = details.samples
    assert (sample.name, sample.message, sample.code) == ("Ada", "It got 3.", "theirs")


async def test_wrong_answers_with_the_same_diagnosis_are_one_kind_in_the_readers_language(filled: Filled) -> None:
    mean, one = (
        CheckResult(name, 5, "failed", "This is the sum, not the mean.") for name in ("is_the_mean", "takes_one")
    )
    korean = replace(mean, message="평균이 아니라 합계입니다.")
    await filled.tried("Ada", "failed", mean, one, days_ago=2)
    await filled.tried("Ada", "failed", mean, replace(one, message="It got 3."), code="two mistakes")
    await filled.tried("Bob", "failed", korean, language="ko")

    ada = filled.people["Ada"]
    async with filled.scope() as scope:
        details = await describe_wrong_answers(scope, LESSON, "mean")
        member = await scope.session.get_one(GroupMember, (filled.group.id, ada.id))
        answers = (await report_learner(scope, ada, member)).wrong_answers
    async with filled.scope(language="ko") as scope:
        (spoken, _) = texts((await describe_wrong_answers(scope, LESSON, "mean")).table)
    other = "takes_one: wrong result"
    assert texts(details.table) == [["This is the sum, not the mean", "2", "3"], [other, "1", "1"]]
    ((kind, (sample,)),) = details.samples
    assert (kind, sample.code) == ("This is the sum, not the mean", "two mistakes"), "once, below its first mistake"
    assert spoken[0] == "평균이 아니라 합계입니다"
    assert sorted((len(answer.checks), answer.sample and answer.sample.message) for answer in answers) == [
        (1, ""),
        (2, "It got 3."),
    ]


async def test_submissions_that_end_before_a_check_are_wrong_answers_with_a_kind(filled: Filled) -> None:
    unreached = [CheckResult(name, 5, "not-reached", "Fix it first.") for name in ("is_the_mean", "takes_one")]
    await filled.tried("Ada", "failed", *unreached, outcome="error", error="SyntaxError", code="def")
    await filled.tried("Bob", "failed", CheckResult("is_the_mean", 5, "passed"), unreached[1], outcome="timeout")
    await filled.tried("Bob", "failed", *unreached, outcome="memory")

    async with filled.scope() as scope:
        details = await describe_wrong_answers(scope, LESSON, "mean")
        reports = []
        for name in ("Ada", "Bob"):
            account = filled.people[name]
            member = await scope.session.get_one(GroupMember, (filled.group.id, account.id))
            reports.append(await report_learner(scope, account, member))
    limits = ["Stopped: it needed more memory than allowed", "Stopped: it ran longer than allowed"]
    assert texts(details.table) == [[kind, "1", "1"] for kind in (*limits, "SyntaxError before the checks")]
    ((kind, (sample,)),) = details.samples
    assert (kind, sample.name, sample.code, sample.message) == ("SyntaxError before the checks", "Ada", "def", "v")
    ada, bob = (report.wrong_answers for report in reports)
    assert [answer.checks for answer in ada] == [["SyntaxError before the checks"]]
    assert sorted(answer.checks[0] for answer in bob) == limits


async def test_who_is_stuck_is_listed_by_name_whether_or_not_code_is_shown(filled: Filled) -> None:
    first = CheckResult("is_the_mean", 5, "failed", "secret")
    for days_ago in (4, 3, 2):
        await filled.tried("Bob", "failed", first, days_ago=days_ago)
        await filled.tried("Ada", "failed", first, days_ago=days_ago)
        await filled.tried("Outsider", "failed", first, days_ago=days_ago)
    last = CheckResult("takes_one", 5, "error", "secret")
    await filled.tried("Bob", "failed", CheckResult("is_the_mean", 5, "passed"), last)
    await filled.tried("Ada", "passed")
    await filled.tried("Cyd", "failed", first)

    async with filled.scope() as scope:
        table = await list_stuck(scope, LESSON, "mean")
        recent = await list_stuck(scope, LESSON, "none")
        found = await list_learners(scope, "", 0, 0, only_stuck=True)
        everyone = await list_learners(scope, "", 0, 0)
    ((name, tries, at, check),) = texts(table)
    assert (name, tries, at) == ("Bob", "4", (NOW - timedelta(days=1)).strftime("%Y-%m-%d %H:%M:%S"))
    assert check.endswith(": ended with an error")
    assert "secret" not in str(table.rows)
    link = table.rows[0][0].link
    assert link is not None
    assert link.parts["account_id"] == filled.people["Bob"].id
    assert list(recent.rows) == []
    assert [row.account.name for row in found.rows] == ["Bob"]
    assert [row.stuck for row in everyone.rows] == [0, 1, 0]


async def test_who_stopped_in_a_lesson_is_listed_by_name(filled: Filled) -> None:
    for name, days_ago in (("Ada", 2), ("Bob", 8), ("Cyd", 9), ("Outsider", 9)):
        await filled.opened(name, days_ago)

    async with filled.scope() as scope:
        table = await list_stopped(scope, LESSON)
        elsewhere = await list_stopped(scope, "course/two")
    assert [row[0] for row in texts(table)] == ["Bob", "Cyd"]
    assert list(elsewhere.rows) == []


async def test_a_list_of_learners_says_when_it_is_not_complete(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.groups.learner_lists.MAX_LISTED", 1)
    for name in ("Ada", "Bob"):
        await filled.opened(name, 8)

    async with filled.scope() as scope:
        table = await list_stopped(scope, LESSON)
    assert len(table.rows) == 1
    assert table.hint.endswith("This list shows the latest 1.")


async def test_questions_without_an_answer_are_listed(filled: Filled) -> None:
    await filled.asked("Ada", "Why twice?\n\n" + "long " * 60, reply_count=1)
    await filled.asked("Bob", "=What?", cell="make-data")
    await filled.asked("Cyd", "**half** of `x`\n\n```python\nx\n```", reply_count=2)
    await filled.asked("Bob", "Answered", answer_id="x")
    await filled.asked("Bob", "Hidden", state="hidden")
    await filled.asked("Outsider", "Not ours")

    found = await filled.report("questions")
    assert [(row[0][:10], row[1], row[5]) for row in found] == [
        ("=What?", "Bob", "0"),
        ("Why twice?", "Ada", "1"),
        ("half of x ", "Cyd", "2"),
    ]
    assert len(found[1][0]) <= 120
    assert [row[3] for row in found] == ["Make data", "", ""]


async def test_the_file_of_questions_has_addresses_and_times_of_the_group(filled: Filled) -> None:
    at = datetime(2026, 11, 28, 5, 41, 31, 615416, UTC)
    await filled.asked("Bob", "Why?", cell="make-data", created_at=at)

    async with filled.scope() as scope:
        table = await REPORTS["questions"](scope)
    head, row = table.csv_rows(ZoneInfo("Asia/Seoul"), lambda link: f"to {link.parts['comment_id']}")
    assert (head[4], row[4]) == ("Asked (Asia/Seoul)", "2026-11-28 14:41:31")
    assert head[6] == "Address"
    assert row[6].startswith("to ")
    assert table.rows[0][4].raw == "2026-11-28T05:41:31.615416+00:00"  # what the API has


async def test_the_table_of_learners_has_pages_and_finds_names(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled.opened("Bob", 1, completed=True)
    async with filled.db.writing() as session:
        session.add(GroupDeadline(group_id=filled.group.id, lesson=LESSON, exercise="", due_at=NOW))
    monkeypatch.setattr("app.groups.learners.PAGE_SIZE", 2)

    async with filled.scope() as scope:
        first = await list_learners(scope, "", 0, 0)
        second = await list_learners(scope, "", 1, 0)
        found = await list_learners(scope, "bO", 0, 0)
        nobody = await list_learners(scope, "%", 0, 0)
    assert [row.account.name for row in first.rows] == ["Ada", "Bob"]
    assert [row.states for row in first.rows] == [{LESSON: LessonStanding.overdue}, {LESSON: LessonStanding.completed}]
    assert (first.next_learners, second.next_learners, first.next_lessons) == (1, None, None)
    assert [row.account.name for row in second.rows] == ["Cyd"]
    assert [row.account.name for row in found.rows] == ["Bob"]
    assert list(nobody.rows) == []


async def test_the_table_of_learners_is_sorted_by_its_columns_over_all_pages(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.groups.learners.PAGE_SIZE", 2)
    await filled.opened("Bob", 1)
    await filled.opened("Cyd", 9, completed=True)
    for name in ("Cyd", "Outsider"):
        for days_ago in (4, 3, 2):
            await filled.tried(name, "failed", days_ago=days_ago)

    async def names(order: LearnerOrder, *, reverse: bool = False) -> list[str]:
        async with filled.scope() as scope:
            pages = [await list_learners(scope, "", page, 0, order=order, reverse=reverse) for page in (0, 1)]
        return [row.account.name for page in pages for row in page.rows]

    assert await names(LearnerOrder.name) == ["Ada", "Bob", "Cyd"]
    assert await names(LearnerOrder.name, reverse=True) == ["Cyd", "Bob", "Ada"]
    assert await names(LearnerOrder.stuck) == ["Cyd", "Ada", "Bob"]
    assert await names(LearnerOrder.stuck, reverse=True) == ["Ada", "Bob", "Cyd"]
    assert await names(LearnerOrder.completed) == ["Ada", "Bob", "Cyd"]
    assert await names(LearnerOrder.completed, reverse=True) == ["Cyd", "Ada", "Bob"]
    assert await names(LearnerOrder.seen) == ["Ada", "Cyd", "Bob"], "Ada was never seen"
    assert await names(LearnerOrder.seen, reverse=True) == ["Bob", "Cyd", "Ada"]
    filled.group.ends_at = NOW - timedelta(days=5)
    assert await names(LearnerOrder.seen, reverse=True) == ["Cyd", "Ada", "Bob"], "Bob came after the end"


async def test_the_export_has_every_learner(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.groups.learners._EXPORT_BATCH", 2)
    await filled.opened("Bob", 1, completed=True)
    for _ in range(3):
        await filled.tried("Cyd", "failed")
    await filled.tried("Bob", "failed")
    await filled.tried("Ada", "passed")
    filled.group.time_zone = "Asia/Seoul"
    window = report_window(filled.group, "all", NOW)
    async with filled.scope() as scope:
        lessons = scope.lessons()

    rows: list[Sequence[str]] = [
        row
        async for row in export_learners(
            filled.db,
            filled.group,
            lambda session: ReportScope(session, filled.group, window, filled.catalog, "en", NOW),
            lessons,
        )
    ]
    title = "1. Exercise: Your turn"
    head = ["Name", "Handle", "Lessons completed", "Stuck", "Last seen (Asia/Seoul)", "1. The lesson", title]
    assert rows[0] == head
    assert rows[2][4] == (NOW - timedelta(days=1)).astimezone(ZoneInfo("Asia/Seoul")).strftime("%Y-%m-%d %H:%M:%S")
    assert [(row[0], *row[2:4], *row[5:]) for row in rows[1:]] == [
        ("Ada", "0", "0", "", "passed"),
        ("Bob", "1", "0", "completed", "tried"),
        ("Cyd", "0", "1", "", "stuck"),
    ]


async def test_a_learner_is_reported_with_deadlines_and_shared_code(filled: Filled) -> None:
    await filled.opened("Ada", 5, completed=True)
    await filled.tried("Ada", "failed", days_ago=3)
    await filled.tried("Ada", "passed", days_ago=2)
    await filled.ran("Ada", "error", error="ValueError")
    await filled.ran("Ada", "error", error="OldError", days_ago=10)
    async with filled.db.writing() as session:
        for exercise, days in (("", 4), ("mean", 3)):
            due = NOW - timedelta(days=days)
            session.add(GroupDeadline(group_id=filled.group.id, lesson=LESSON, exercise=exercise, due_at=due))

    ada = filled.people["Ada"]
    async with filled.scope() as scope:
        member = await scope.session.get_one(GroupMember, (filled.group.id, ada.id))
        report = await report_learner(scope, ada, member)
    assert [(row.tries, row.passed_at is not None) for row in report.exercises] == [(2, True)]
    assert [row.state for row in report.deadlines] == [LessonStanding.completed, LessonStanding.late]
    assert [(run.what, run.sample is not None) for run in report.failed_runs] == [
        ("ValueError", True),
        ("OldError", False),
    ]


async def test_a_learners_wrong_answers_are_reported_with_code_only_if_it_is_shared(filled: Filled) -> None:
    wrong = CheckResult("takes_one", 5, "failed", "It got 3.")
    for days_ago, code in ((1, "new"), (10, "before the agreement")):
        await filled.tried(
            "Ada", "failed", CheckResult("is_the_mean", 5, "passed"), wrong, days_ago=days_ago, code=code
        )
    await filled.tried("Ada", "passed", code="right")
    await filled.tried("Bob", "failed", wrong, code="of Bob")

    ada = filled.people["Ada"]
    async with filled.scope() as scope:
        member = await scope.session.get_one(GroupMember, (filled.group.id, ada.id))
        shared, older = (await report_learner(scope, ada, member)).wrong_answers

    assert shared.sample is not None
    assert (shared.sample.code, shared.sample.message) == ("new", "It got 3.")
    assert older.sample is None
    assert [len(answer.checks) for answer in (shared, older)] == [1, 1]
    assert shared.checks[0].endswith(": wrong result")


@pytest.mark.parametrize("name", list(REPORTS))
async def test_a_group_without_learners_has_a_sentence_for_every_report(
    database: Database, catalog: Catalog, name: str
) -> None:
    empty = Filled(database, catalog)
    await empty.fill()

    async with empty.scope() as scope:
        table = await REPORTS[name](scope)
    assert table.empty.endswith(".")
    assert all(cell == "0" for row in texts(table) for cell in row[1:])


@pytest.mark.parametrize(
    ("done", "due", "state"),
    [
        (None, None, LessonStanding.opened),
        (None, 1, LessonStanding.overdue),
        (None, -1, LessonStanding.opened),
        (2, 1, LessonStanding.completed),
        (1, 1, LessonStanding.late),
    ],
)
def test_a_lesson_is_late_from_the_moment_it_is_due(done: int | None, due: int | None, state: LessonStanding) -> None:
    def ago(days: int | None) -> datetime | None:
        return None if days is None else NOW - timedelta(days=days)

    row = LearnerLesson(LESSON, NOW, None, ago(done), NOW)

    assert lesson_state(row, ago(due), NOW) is state


def test_a_period_never_reaches_beyond_the_days_of_the_group() -> None:
    group = Group(starts_at=NOW - timedelta(days=10), ends_at=NOW - timedelta(days=1))

    assert report_window(group, "30", NOW).since == group.starts_at
    assert report_window(group, "7", NOW).since == NOW - timedelta(days=7)
    assert report_window(group, "nonsense", NOW) == report_window(group, DEFAULT_PERIOD, NOW)
    assert report_window(group, "all", NOW).until == group.ends_at


def test_a_table_is_sorted_by_any_of_its_columns() -> None:
    rows = [
        (ReportCell("béta"), count_cell(2), ReportCell("yesterday", NOW), ReportCell("–")),
        (ReportCell("Alpha"), count_cell(11), ReportCell("today", NOW + timedelta(days=1)), ReportCell("")),
        (ReportCell("gamma"), count_cell(2), ReportCell(""), ReportCell("a")),
    ]
    table = ReportTable("one", "One", ("Name", "Runs", "At", "More"), rows, "")

    def order(column: int | None, *, reverse: bool = False) -> str:
        return "".join(row[0].text[0] for row in table.sorted_by(column, reverse=reverse).rows)

    assert [order(column) for column in range(4)] == ["Abg", "Abg", "bAg", "gbA"]
    assert [order(column, reverse=True) for column in range(4)] == ["gbA", "bgA", "Abg", "bgA"], "nothing comes last"
    assert table.sorted_by(1, reverse=False).order == TableOrder(1, reverse=False, descending=True)
    assert table.sorted_by(None, reverse=True) is table.sorted_by(4, reverse=False) is table
