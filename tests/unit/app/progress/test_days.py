"""A week of three days takes more than one, whatever zones a browser names and whatever browsers come together."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select

from app.db import Database
from app.lessons.catalog import Catalog
from app.progress.days import crowded
from app.progress.facts import RunFacts
from app.progress.marks import Mark, Marks
from app.progress.models import Entry, LearnerZone, LessonProgress
from app.progress.rulebook import RuleBook
from app.progress.service import Progress
from tests.factories.course import LESSON, write_course
from tests.factories.drawn import examples

_BEGIN = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)
_DAY = timedelta(hours=23)
_ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Seoul", "America/Los_Angeles", "Pacific/Chatham")
_LEARNERS = ("one", "two", "three")
_STEP = st.tuples(
    st.sampled_from([0, 1, 30, 300, 690, 720, 1380, 1441]),
    st.sampled_from(_LEARNERS),
    st.sampled_from([*_ZONES, "merge", "run"]),
)


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    catalog = Catalog(write_course(tmp_path / "lessons"), quiet=True)
    progress = Progress(catalog, RuleBook(catalog))
    catalog.reload()
    return progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What time the server believes it is."""
    clock = SimpleNamespace(now=_BEGIN)
    for user in ("service", "ledger", "zones"):
        monkeypatch.setattr(f"app.progress.{user}.now", lambda: clock.now)
    return clock


async def _read(progress: Progress, db: Database, learner: str, zone: str) -> None:
    async with db.writing() as session:
        mark = Mark(lesson=LESSON, opened_at=1, seen_at=2)
        await progress.take_marks(session, learner, Marks(time_zone=zone, marks=[mark]))


async def _run(progress: Progress, db: Database, learner: str, at: datetime) -> None:
    facts = RunFacts(LESSON, "hello", "1", None, "cpu", 3, ok=True, ended=at, duration_ms=1)
    async with db.writing() as session:
        await progress.run_ended(session, learner, facts)


async def _merge(progress: Progress, db: Database, one: str, other: str) -> None:
    async with db.writing() as session:
        await progress.merge(session, one, other)


async def _days(db: Database, learner: str) -> dict[str, datetime]:
    async with db.session() as session:
        mine = select(Entry.subject, Entry.at).where(Entry.learner_id == learner, Entry.kind == "day")
        return {row.subject: row.at for row in await session.execute(mine)}


@examples(10)
@given(steps=st.lists(_STEP, max_size=14))
async def test_within_any_23_hours_two_days_count_at_most(
    database: Database, progress: Progress, clock: SimpleNamespace, steps: list[tuple[int, str, str]]
) -> None:
    async with database.writing() as session:
        for table in (Entry, LearnerZone, LessonProgress):
            await session.execute(delete(table))
    for minutes, learner, what in steps:
        clock.now += timedelta(minutes=minutes)
        if what == "merge":
            await _merge(progress, database, learner, "account")
        elif what == "run":
            await _run(progress, database, learner, clock.now)
        else:
            await _read(progress, database, learner, what)

    for learner in (*_LEARNERS, "account"):
        moments = sorted((await _days(database, learner)).values())
        assert all(third - first >= _DAY for first, third in zip(moments, moments[2:], strict=False))


async def test_zones_that_are_changed_between_two_marks_make_no_week(
    database: Database, progress: Progress, clock: SimpleNamespace
) -> None:
    for zone in ("Etc/GMT+12", "UTC", "Pacific/Kiritimati"):  # three dates at this moment
        await _read(progress, database, "me", zone)
        clock.now += timedelta(minutes=1)
    assert set(await _days(database, "me")) == {"2026-11-15", "2026-11-16"}

    clock.now += _DAY
    await _read(progress, database, "me", "Pacific/Kiritimati")
    assert set(await _days(database, "me")) == {"2026-11-15", "2026-11-16", "2026-11-17"}


async def test_browsers_of_several_zones_make_no_week_together(
    database: Database, progress: Progress, clock: SimpleNamespace
) -> None:
    for learner, zone in zip(_LEARNERS, ("Etc/GMT+12", "UTC", "Pacific/Kiritimati"), strict=True):
        await _read(progress, database, learner, zone)
        await _merge(progress, database, learner, "account")

    assert set(await _days(database, "account")) == {"2026-11-15", "2026-11-16"}


_CLOCKS_GO_FORWARD = datetime(2027, 3, 14, tzinfo=ZoneInfo("America/Los_Angeles"))


def test_a_day_of_23_hours_is_a_day_like_others() -> None:
    before, after = _CLOCKS_GO_FORWARD - timedelta(minutes=1), _CLOCKS_GO_FORWARD + timedelta(days=1, minutes=1)
    assert after.astimezone(UTC) - before.astimezone(UTC) < timedelta(hours=24)

    assert not crowded([before.astimezone(UTC), (_CLOCKS_GO_FORWARD + timedelta(hours=8)).astimezone(UTC)], after)


@given(st.sampled_from(_ZONES), st.lists(st.integers(0, 60 * 24 * 9), max_size=30))
def test_who_stays_in_one_place_loses_no_day(zone: str, minutes: list[int]) -> None:
    moments: dict[object, datetime] = {}
    for moment in (_BEGIN + timedelta(minutes=minute) for minute in sorted(minutes)):
        date = moment.astimezone(ZoneInfo(zone)).date()
        assert date in moments or not crowded(moments.values(), moment)
        moments.setdefault(date, moment)


@pytest.mark.timeout(120)
async def test_fifty_marks_runs_and_merges_of_two_processes_at_once_count_two_days(
    database: Database, progress: Progress, clock: SimpleNamespace
) -> None:
    other = Database(database.url)
    chance = random.Random(11)
    jobs = [
        *(
            _read(progress, (database, other)[n % 2], chance.choice(_LEARNERS), chance.choice(_ZONES))
            for n in range(30)
        ),
        *(_run(progress, (database, other)[n % 2], chance.choice(_LEARNERS), clock.now) for n in range(14)),
        *(_merge(progress, (database, other)[n % 2], _LEARNERS[n % 3], "account") for n in range(6)),
    ]
    chance.shuffle(jobs)
    try:
        await asyncio.gather(*jobs)
    finally:
        await other.close()
    for learner in _LEARNERS:
        await _merge(progress, database, learner, "account")

    assert len(await _days(database, "account")) <= 2
    async with database.session() as session:
        rows = Counter((row.kind, row.subject) for row in await session.scalars(select(Entry)) if row.kind == "cell")
        owners = set(await session.scalars(select(Entry.learner_id)))
        visited = (await session.scalars(select(LessonProgress.learner_id))).all()
    assert rows == {("cell", f"{LESSON}#hello"): 1}
    assert (owners, visited) == ({"account"}, ["account"])
