"""Learners' work follows what was renamed, and former addresses of lessons lead to the present ones."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from app.comments import editing
from app.comments.models import Comment, CommentCounter
from app.db import Base, Database
from app.exercises.models import PredictionAnswer, QuizAnswer, Review
from app.feedback.models import LessonVote, ProblemReport
from app.groups.models import Group, GroupDeadline
from app.lessons.catalog import Catalog
from app.lessons.former_names import Rename
from app.lessons.renaming import RENAMERS, RenameFollower
from app.main import FEATURES
from app.progress.models import LedgerEntry, LessonProgress
from app.runs.models import CodeDraft, Run, ScratchCell
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.stored_runs import store_run

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = EARLY + timedelta(days=1)
RENAMERS_OF_FEATURES = [renamer for feature in FEATURES for renamer in feature.renamers]
LESSON = Rename("c/old", "c/new")
CELL = Rename("c/new", "c/new", "fit", "train")
MOVED_CELL = Rename("c/old", "c/new", "fit", "train")


async def rename(db: Database, *renames: Rename) -> None:
    for one in renames:
        async with db.writing() as session:
            for renamer in RENAMERS_OF_FEATURES:
                await renamer(session, one)


async def store(db: Database, *rows: Base) -> None:
    async with db.writing() as session:
        session.add_all(rows)


async def load(db: Database, *columns: Any) -> list[tuple[Any, ...]]:
    async with db.session() as session:
        return sorted(tuple(row) for row in await session.execute(select(*columns)))


def draft(account: str, lesson: str, cell: str, code: str, at: datetime) -> CodeDraft:
    return CodeDraft(
        account_id=account, lesson=lesson, cell=cell, code=code, original_digest="d", version=1, updated_at=at
    )


def group(name: str) -> Group:
    return Group(id=name, name=name, course="c", time_zone="UTC", starts_at=None, ends_at=None, created_at=EARLY)


def deadline(lesson: str, exercise: str, at: datetime) -> GroupDeadline:
    return GroupDeadline(group_id="autumn", lesson=lesson, exercise=exercise, due_at=at)


def review(account: str, lesson: str, exercise: str, run: str) -> Review:
    facts = {"account_id": account, "group_id": None, "code": "x", "output": "", "results": "[]", "remark": ""}
    return Review(id=run, lesson=lesson, exercise=exercise, run_id=run, state="accepted", requested_at=EARLY, **facts)


def quiz(learner: str, lesson: str, name: str, choices: str, at: datetime) -> QuizAnswer:
    return QuizAnswer(
        learner_id=learner,
        lesson=lesson,
        quiz=name,
        first_choices=choices,
        first_right=True,
        choices=choices,
        answered_at=at,
        tries=1,
    )


def entry(learner: str, kind: str, subject: str, xp: int = 2, at: datetime = EARLY) -> LedgerEntry:
    return LedgerEntry(learner_id=learner, kind=kind, subject=subject, xp=xp, occurred_at=at)


@pytest.mark.parametrize(("renames", "lesson"), [((LESSON, CELL), "c/new"), ((MOVED_CELL,), "c/old")])
async def test_all_work_in_a_lesson_and_its_cells_follows(
    database: Database, renames: tuple[Rename, ...], lesson: str
) -> None:
    """A cell that moves to another lesson takes its work along, and what is about the ``lesson`` stays."""
    ada = await store_account(database)
    await store_run(database, lesson="c/old", cell="fit")
    await store_run(database, lesson="c/old", cell="scratch-1")
    await store_run(database, lesson="c/old-one", cell="fit")
    await store(
        database,
        draft(ada.id, "c/old", "fit", "x", EARLY),
        ScratchCell(
            learner_id="v",
            lesson="c/old",
            name="scratch-1",
            kind="code",
            source="s",
            anchor="fit",
            position=0,
            version=1,
            created_at=EARLY,
            updated_at=EARLY,
        ),
        quiz("v", "c/old", "fit", "1", EARLY),
        PredictionAnswer(
            learner_id="v", lesson="c/old", prediction="fit", guess="1", informed=False, answered_at=EARLY
        ),
        LessonProgress(
            learner_id="v", lesson="c/old", started_at=EARLY, last_seen_at=LATE, completed_at=LATE, anchor="cell-fit"
        ),
        LessonVote(learner_id="v", lesson="c/old", id="1", helpful=True, comment="", language="en", updated_at=EARLY),
        ProblemReport(
            id="1",
            idempotency_key="1",
            learner_id="v",
            kind="code",
            page="/en/courses/c/old",
            lesson="c/old",
            cell="fit",
            text="t",
            language="en",
            created_at=EARLY,
        ),
        entry("v", "lesson", "c/old"),
        entry("v", "cell", "c/old#fit"),
        entry("v", "check", "c/old#fit/It fits"),
        entry("v", "cell", "c/old#fit-2"),
        entry("v", "module", "c/old"),
        entry("v", "cell", "c/old-one#fit"),
        group("autumn"),
        deadline("c/old", "", EARLY),
        deadline("c/old", "fit", LATE),
        review(ada.id, "c/old", "fit", "r1"),
        review(ada.id, "c/new", "train", "r2"),
    )
    async with database.writing() as session:
        writer = await session.merge(ada)
        for number in range(2):
            await editing.create_comment(
                session, writer, editing.CommentDraft("c/old", "fit", None, f"Hello {number}", f"k{number}", "en"), 0
            )

    await rename(database, *renames)
    await rename(database, *renames)

    here = [("c/new", "train")]
    assert await load(database, Run.lesson, Run.cell) == [("c/new", "scratch-1"), *here, ("c/old-one", "fit")]
    assert await load(database, CodeDraft.lesson, CodeDraft.cell) == here
    assert await load(database, ScratchCell.lesson, ScratchCell.anchor) == here
    assert await load(database, QuizAnswer.lesson, QuizAnswer.quiz) == here
    assert await load(database, PredictionAnswer.lesson, PredictionAnswer.prediction) == here
    assert await load(database, LessonProgress.lesson, LessonProgress.anchor) == [(lesson, "cell-train")]
    assert await load(database, LessonVote.lesson) == [(lesson,)]
    assert await load(database, GroupDeadline.lesson, GroupDeadline.exercise) == sorted([(lesson, ""), *here])
    assert await load(database, Review.lesson, Review.exercise) == here * 2
    assert await load(database, ProblemReport.lesson, ProblemReport.cell) == here
    assert await load(database, Comment.lesson, Comment.cell) == here * 2
    assert await load(database, CommentCounter.lesson, CommentCounter.cell, CommentCounter.comment_count) == [
        ("c/new", "train", 2)
    ]
    assert set(await load(database, LedgerEntry.kind, LedgerEntry.subject)) == {
        ("cell", f"{lesson}#fit-2"),
        ("cell", "c/new#train"),
        ("cell", "c/old-one#fit"),
        ("check", "c/new#train/It fits"),
        ("lesson", lesson),
        ("module", "c/old"),
    }


@pytest.mark.parametrize(("old", "new"), [(EARLY, LATE), (LATE, EARLY)])
async def test_work_under_both_names_becomes_one(database: Database, old: datetime, new: datetime) -> None:
    ada = await store_account(database)
    await store(
        database,
        draft(ada.id, "c/new", "fit", "old", old),
        draft(ada.id, "c/new", "train", "new", new),
        quiz("v", "c/new", "fit", "0", old),
        quiz("v", "c/new", "train", "1", new),
        entry("v", "cell", "c/new#fit", at=old),
        entry("v", "cell", "c/new#train", at=new),
        entry("w", "cell", "c/new#train", at=new),
        entry("v", "lesson", "c/old", at=old),
        entry("v", "lesson", "c/new", at=new),
        entry("v", "cell", "c/old-one#a"),
        entry("v", "cell", "c/new-one#a"),
        LessonProgress(learner_id="v", lesson="c/old", started_at=old, last_seen_at=old, anchor="before"),
        LessonProgress(learner_id="v", lesson="c/new", started_at=new, last_seen_at=new, anchor="after"),
        group("autumn"),
        deadline("c/new", "fit", old),
        deadline("c/new", "train", new),
        deadline("c/old", "", old),
        deadline("c/new", "", new),
    )

    await rename(database, LESSON, CELL)

    first, last = ("0", "new") if old == EARLY else ("1", "old")
    assert await load(database, QuizAnswer.quiz, QuizAnswer.first_choices) == [("train", first)]
    assert await load(database, CodeDraft.cell, CodeDraft.code) == [("train", last)]
    assert await load(database, LedgerEntry.learner_id, LedgerEntry.subject, LedgerEntry.occurred_at) == [
        ("v", "c/new", EARLY),
        ("v", "c/new#train", EARLY),
        ("v", "c/new-one#a", EARLY),
        ("v", "c/old-one#a", EARLY),
        ("w", "c/new#train", new),
    ]
    deadlines = (GroupDeadline.lesson, GroupDeadline.exercise, GroupDeadline.due_at)
    assert await load(database, *deadlines) == [("c/new", "", LATE), ("c/new", "train", LATE)]
    progress = (LessonProgress.lesson, LessonProgress.started_at, LessonProgress.last_seen_at, LessonProgress.anchor)
    anchor = "after" if new == LATE else "before"
    assert await load(database, *progress) == [("c/new", EARLY, LATE, anchor)]


async def test_cells_that_learners_added_stay_if_the_other_lesson_has_one_of_the_same_name(database: Database) -> None:
    """Browsers may choose these names, so that one learner's must not keep the work of others from moving."""

    def scratch(learner: str, lesson: str, anchor: str) -> ScratchCell:
        texts = {"name": "scratch-1", "kind": "code", "source": "s", "anchor": anchor}
        times = {"created_at": EARLY, "updated_at": EARLY}
        return ScratchCell(learner_id=learner, lesson=lesson, position=0, version=1, **texts, **times)

    await store(database, scratch("v", "c/old", "fit"), scratch("v", "c/new", ""), scratch("w", "c/old", "fit"))
    await store(database, scratch("x", "c/old", "plot"))
    for learner in "vwx":
        await store_run(database, learner_id=learner, lesson="c/old", cell="scratch-1")

    await rename(database, MOVED_CELL)

    assert await load(database, ScratchCell.learner_id, ScratchCell.lesson, ScratchCell.anchor) == [
        ("v", "c/new", ""),
        ("v", "c/old", "fit"),
        ("w", "c/new", "train"),
        ("x", "c/old", "plot"),
    ]
    assert await load(database, Run.learner_id, Run.lesson) == [("v", "c/old"), ("w", "c/new"), ("x", "c/old")]


def move_lesson(settings: Settings, was: str = "was: [first]\n", cell: str = ":name: hello\n") -> Path:
    """Rename the lesson ``small/first`` to ``small/start``, and perhaps its cell."""
    folder = settings.lessons_dir / "small"
    lesson = (folder / "first").rename(folder / "start") / "lesson.md"
    text = lesson.read_text().replace("status:", f"{was}status:").replace(":name: hello\n", cell)
    lesson.write_text(text)
    toml = folder / "course.toml"
    toml.write_text(toml.read_text().replace('"first"', '"start"'))
    return lesson


async def test_former_addresses_lead_to_the_lesson(app: FastAPI, settings: Settings, client: httpx.AsyncClient) -> None:
    move_lesson(settings)
    app.state.catalog.reload()

    for path in ("", ".md", "/comments?cell=hello"):
        answer = await client.get(f"/ko/courses/small/first{path}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (308, f"/ko/courses/small/start{path}"), path
        assert answer.headers["cache-control"] == "no-cache"
        assert (await client.get(answer.headers["location"])).status_code == 200
    assert (await client.get("/en/courses/small/second")).status_code == 404


@pytest.mark.usefixtures("supervisor")
async def test_a_page_opened_before_the_rename_still_saves_and_runs(app: FastAPI, settings: Settings) -> None:
    async with await signed_in_browser(app, "learner") as ada:
        move_lesson(settings, cell=":name: greet\n:was: hello\n")
        app.state.catalog.reload()
        change = {"lesson": "small/first", "cell": "hello", "code": "1", "original_digest": "0" * 16, "seen_version": 0}
        assert (await ada.put("/code-drafts", json=change)).status_code == 200
        run = await ada.post("/runs", json={"lesson": "small/first", "cell": "hello", "code": "1"})
        assert run.status_code == 202, run.text

    assert await load(app.state.db, CodeDraft.lesson, CodeDraft.cell) == [("small/start", "greet")]
    assert await load(app.state.db, Run.lesson, Run.cell) == [("small/start", "greet")]


async def test_the_server_moves_work_when_the_files_change(app: FastAPI, settings: Settings) -> None:
    await store_run(app.state.db)
    move_lesson(settings)
    await asyncio.to_thread(app.state.catalog.reload)
    async with asyncio.timeout(60):
        while await load(app.state.db, Run.lesson) != [("small/start",)]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_draft_does_not_give_away_what_was_renamed_to_it(
    app: FastAPI, settings: Settings, client: httpx.AsyncClient
) -> None:
    lesson = move_lesson(settings)
    lesson.write_text(lesson.read_text().replace("status: published", "status: draft"))
    app.state.catalog.reload()

    assert (await client.get("/en/courses/small/first", follow_redirects=False)).status_code == 404


async def test_each_former_name_is_followed_once_in_a_process(app: FastAPI, settings: Settings) -> None:
    move_lesson(settings)
    catalog = Catalog(settings.lessons_dir, quiet=True)
    catalog.reload()
    seen: list[Rename] = []

    async def note(_session: object, one: Rename) -> None:
        seen.append(one)

    follower = RenameFollower(catalog, app.state.db, [note])
    await follower.follow()
    await follower.follow()
    assert seen == [Rename("small/first", "small/start")]
    assert RENAMERS.get(app) == RENAMERS_OF_FEATURES
