"""What pages show of a learner's progress, each in one or two queries.

Texts are in the current language (``app.i18n.current_language``). A learner of None has no progress yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from sqlalchemy import String, bindparam, cast, func, literal, null, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account
from app.db import UtcDateTime, now
from app.lessons.catalog import Catalog
from app.lessons.course_file import LocalizedText, localized
from app.lessons.errors import CourseNotFound
from app.progress import timezones
from app.progress.achievement_file import Achievement, AchievementProgress
from app.progress.ledger import load_learner_events
from app.progress.levels import Level, level_for_xp
from app.progress.models import LearnerTimeZone, LedgerEntry, LessonProgress
from app.progress.requirements import Requirements, achievement_progress
from app.progress.streaks import Streak, compute_streak

_MAX_NEWS_ITEMS = 50
_NEWS_KINDS = (
    *("achievement", "cell", "check", "course", "exercise", "helpful", "lesson", "module"),
    *("prediction", "quiz", "strategy", "topology"),
)
"""Kinds that have a label; other kinds show only through the achievements they lead to."""
_EPOCH = datetime.fromtimestamp(0, UTC)

_LEARNER_ID = bindparam("learner", type_=String)
_OWN_ENTRIES = LedgerEntry.learner_id == _LEARNER_ID
_NO_TIMESTAMP = cast(null(), UtcDateTime)
# Built once: building the query costs more than running it. The first column tells the kind of each row.
_FIGURES_QUERY = union_all(
    select(LedgerEntry.kind, LedgerEntry.subject, LedgerEntry.xp, _NO_TIMESTAMP, literal("")).where(
        _OWN_ENTRIES, LedgerEntry.kind.in_(("lesson", "achievement", "day"))
    ),
    select(literal("sum"), literal(""), func.sum(LedgerEntry.xp), func.max(LedgerEntry.occurred_at), literal("")).where(
        _OWN_ENTRIES
    ),
    select(literal("zone of account"), Account.time_zone, literal(0), _NO_TIMESTAMP, literal("")).where(
        Account.learner_id == _LEARNER_ID
    ),
    select(literal("zone of browser"), LearnerTimeZone.time_zone, literal(0), _NO_TIMESTAMP, literal("")).where(
        LearnerTimeZone.learner_id == _LEARNER_ID
    ),
    select(
        literal("visit"), LessonProgress.lesson, literal(0), LessonProgress.last_seen_at, LessonProgress.anchor
    ).where(LessonProgress.learner_id == _LEARNER_ID),
)
_OUTLINE_QUERY = union_all(
    select(LedgerEntry.kind, LedgerEntry.subject, literal("")).where(
        _OWN_ENTRIES,
        LedgerEntry.kind.in_(("cell", "exercise", "read", "lesson", "revisit")),
        LedgerEntry.subject.startswith(bindparam("within")),
    ),
    select(literal("visit"), LessonProgress.lesson, LessonProgress.anchor).where(
        LessonProgress.learner_id == _LEARNER_ID
    ),
)
_XP_TOTAL = select(func.max(LedgerEntry.occurred_at), func.coalesce(func.sum(LedgerEntry.xp), 0)).where(_OWN_ENTRIES)


class LessonStage(StrEnum):
    new = "new"
    started = "started"
    completed = "completed"
    revisited = "revisited"
    """Completed, and opened again on a later day."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where to continue: the unfinished lesson that was open last, or the next lesson."""

    course: str
    slug: str
    title: str
    anchor: str
    """The ID of a heading or cell, or ""."""


@dataclass(frozen=True, slots=True)
class ProgressHeader:
    level: Level
    lessons_done: int
    """In the course, or in all courses."""
    lessons: int
    achievements_done: int
    achievements: int
    """The number of all achievements, including hidden ones."""
    percent: int
    """0 to 100: completed lessons, weighted by their minutes."""
    streak: Streak
    resume: ResumePoint | None
    cursor: str
    """The current position in the ledger; later news is requested from here."""


@dataclass(frozen=True, slots=True)
class LessonState:
    """A lesson in the outline."""

    slug: str
    stage: LessonStage
    cells_done: int
    cells: int
    """Cells that must run to complete the lesson."""
    exercises_done: int
    exercises: int
    end_reached: bool
    anchor: str


@dataclass(frozen=True, slots=True)
class AchievementView:
    """An achievement as the learner may see it."""

    id: str
    badge: str
    """Empty, like title and description, for a hidden achievement that is not earned."""
    title: str
    description: str
    hidden: bool
    xp: int
    earned_at: datetime | None
    towards: AchievementProgress


@dataclass(frozen=True, slots=True)
class NewsItem:
    """A ledger entry to show on the page."""

    key: str
    """``kind subject``: the page shows each key once."""
    kind: str
    subject: str
    xp: int
    title: str
    """The title of the achievement, lesson, module, course or cell; else ""."""
    description: str
    badge: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ProgressNews:
    """What is new since a cursor; use ``cursor`` in the next request."""

    cursor: str
    items: tuple[NewsItem, ...]
    xp: int
    """Total XP of all new entries."""
    level_before: int
    level: Level


class ProgressSummary:
    """Queries for pages. One per process, ``ProgressService.summary``."""

    def __init__(self, catalog: Catalog, terms: Callable[[], Requirements]) -> None:
        self._catalog = catalog
        self._terms = terms

    async def header(self, session: AsyncSession, learner_id: str | None, course: str | None = None) -> ProgressHeader:
        """The numbers in the header. ``course`` limits lessons, percent and ``resume`` to one course.

        Raises:
            CourseNotFound: the course does not exist.
        """
        terms = self._terms()
        done = await _load_figures(session, learner_id)
        minutes = {lesson: terms.minutes.get(lesson, 0) for lesson in self._lessons(terms, course)}
        completed = [lesson for lesson in minutes if lesson in done.lessons]
        return ProgressHeader(
            level=level_for_xp(done.xp),
            lessons_done=len(completed),
            lessons=len(minutes),
            achievements_done=sum(rule.id in done.achievements for rule in terms.rules),
            achievements=len(terms.rules),
            percent=_percent(sum(minutes[lesson] for lesson in completed), sum(minutes.values())),
            streak=done.streak,
            resume=self._resume(done, tuple(minutes)),
            cursor=_cursor(done.last),
        )

    async def outline(self, session: AsyncSession, learner_id: str | None, course: str) -> list[LessonState]:
        """The state of each lesson of a course, in order. Raises CourseNotFound."""
        terms = self._terms()
        lessons = self._lessons(terms, course)
        known: set[tuple[str, str]] = set()
        anchors: dict[str, str] = {}
        if learner_id is not None:
            for kind, subject, anchor in await session.execute(
                _OUTLINE_QUERY, {"learner": learner_id, "within": f"{course}/"}
            ):
                if kind == "visit":
                    anchors[subject] = anchor
                else:
                    known.add((kind, subject))
        states = []
        for lesson in lessons:
            cells = terms.cells.get(lesson, frozenset())
            cells_done = sum(("cell", cell) in known for cell in cells)
            if ("lesson", lesson) in known:
                stage = LessonStage.revisited if ("revisit", lesson) in known else LessonStage.completed
            else:
                stage = LessonStage.started if lesson in anchors or cells_done else LessonStage.new
            exercises = [task for task in terms.tasks.get(lesson, ()) if task.kind == "exercise"]
            states.append(
                LessonState(
                    slug=lesson.partition("/")[2],
                    stage=stage,
                    cells_done=cells_done,
                    cells=len(cells),
                    exercises_done=sum(task in known for task in exercises),
                    exercises=len(exercises),
                    end_reached=("read", lesson) in known,
                    anchor=anchors.get(lesson, ""),
                )
            )
        return states

    async def achievements(self, session: AsyncSession, learner_id: str | None) -> list[AchievementView]:
        """All achievements, in the order of the file."""
        terms = self._terms()
        known = await load_learner_events(session, learner_id)
        earned = known.by_kind["achievement"]
        return [
            _achievement_view(rule, earned.get(rule.id), achievement_progress(rule, known, terms))
            for rule in terms.rules
        ]

    async def news(self, session: AsyncSession, learner_id: str | None, since: str) -> ProgressNews:
        """The new ledger entries since a cursor; for an empty cursor, only the current cursor."""
        mine = LedgerEntry.learner_id == learner_id
        last, xp = None, 0
        rows: list[tuple[str, str, int, datetime]] = []
        if learner_id is not None:
            last, xp = (await session.execute(_XP_TOTAL, {"learner": learner_id})).one()
        if since and last is not None and last > (after := _EPOCH + timedelta(microseconds=int(since))):
            entries = select(LedgerEntry.kind, LedgerEntry.subject, LedgerEntry.xp, LedgerEntry.occurred_at).where(
                mine, LedgerEntry.occurred_at > after
            )
            found = await session.execute(
                entries.where(LedgerEntry.occurred_at <= last).order_by(
                    LedgerEntry.occurred_at, LedgerEntry.kind, LedgerEntry.subject
                )
            )
            rows = [(kind, subject, of_it, at) for kind, subject, of_it, at in found]
        new = sum(of_it for _, _, of_it, _ in rows)
        items = [item for row in rows if row[0] in _NEWS_KINDS and (item := self._item(*row))]
        cursor = _cursor(last) if last is not None else since or "0"
        return ProgressNews(
            cursor, tuple(items[-_MAX_NEWS_ITEMS:]), new, level_for_xp(xp - new).number, level_for_xp(xp)
        )

    def _lessons(self, terms: Requirements, course: str | None) -> tuple[str, ...]:
        if course is None:
            return tuple(lesson for one in terms.courses.values() for lesson in one.lessons)
        if course not in terms.courses:
            raise CourseNotFound(course=course[:80])
        return terms.courses[course].lessons

    def _resume(self, done: _LearnerFigures, lessons: Sequence[str]) -> ResumePoint | None:
        """Where to continue in these lessons; None if the learner has opened none of them or completed all."""
        left = {lesson for lesson in lessons if lesson not in done.lessons}
        there = [visit for visit in done.visits if visit[1] in lessons]
        if not there or not left:
            return None
        if unfinished := [visit for visit in there if visit[1] in left]:
            _at, lesson, anchor = max(unfinished)
        else:
            behind = lessons.index(max(there)[1])
            lesson = next(each for each in (*lessons[behind:], *lessons) if each in left)
            anchor = ""
        course, _, slug = lesson.partition("/")
        return ResumePoint(course, slug, self._catalog.lesson_title(lesson, i18n.current_language()), anchor)

    def _item(self, kind: str, subject: str, xp: int, at: datetime) -> NewsItem | None:
        """A ledger entry with its title; None for an achievement that no longer exists."""
        title = description = badge = ""
        course, _, slug = subject.partition("/")
        if kind == "achievement":
            rule = next((rule for rule in self._terms().rules if rule.id == subject), None)
            if rule is None:
                return None
            title, description, badge = _localized(rule.title), _localized(rule.description), rule.badge
        elif kind == "lesson":
            title = self._catalog.lesson_title(subject, i18n.current_language())
        elif kind in ("cell", "exercise"):
            lesson, _, name = subject.partition("#")
            title = self._catalog.cell_title(lesson, name, i18n.current_language())
        elif kind == "check":
            lesson, _, where = subject.partition("#")
            cell, _, name = where.partition("/")
            title = self._catalog.check_title(lesson, cell, name, i18n.current_language())
        elif kind in ("module", "course"):
            title = self._title_of_part(course, slug)
        return NewsItem(f"{kind} {subject}", kind, subject, xp, title, description, badge, at)

    def _title_of_part(self, course: str, module: str) -> str:
        try:
            found = self._catalog.course(course, i18n.current_language())
        except CourseNotFound:
            return module or course
        return next((one.title for one in found.modules if one.slug == module), found.title)


@dataclass(slots=True)
class _LearnerFigures:
    """A learner's numbers, read in one query."""

    xp: int
    last: datetime | None
    """When the last ledger entry was added."""
    lessons: set[str]
    achievements: set[str]
    streak: Streak
    visits: list[tuple[datetime, str, str]]
    """For each lesson: when it was last open, its key, and the anchor."""


async def _load_figures(session: AsyncSession, learner_id: str | None) -> _LearnerFigures:
    subjects: dict[str, set[str]] = {"lesson": set(), "achievement": set(), "day": set()}
    visits: list[tuple[datetime, str, str]] = []
    xp, last, of_account, of_browser = 0, None, None, None
    if learner_id is not None:
        for kind, subject, number, at, anchor in await session.execute(_FIGURES_QUERY, {"learner": learner_id}):
            match kind:
                case "sum":
                    xp, last = number or 0, at
                case "zone of account":
                    of_account = subject
                case "zone of browser":
                    of_browser = subject
                case "visit":
                    visits.append((at, subject, anchor))
                case _:
                    subjects[kind].add(subject)
    today = now().astimezone(timezones.choose_timezone(of_account, of_browser)).date()
    days = compute_streak(map(date.fromisoformat, subjects["day"]), today)
    return _LearnerFigures(xp, last, subjects["lesson"], subjects["achievement"], days, visits)


def _cursor(last: datetime | None) -> str:
    return str((last - _EPOCH) // timedelta(microseconds=1)) if last is not None else "0"


def _percent(part: int, whole: int) -> int:
    return 100 * part // whole if whole else 0


def _localized(words: LocalizedText) -> str:
    return localized(words, i18n.current_language())


def _achievement_view(rule: Achievement, earned_at: datetime | None, way: AchievementProgress) -> AchievementView:
    secret = rule.hidden and earned_at is None
    badge, title, description = (
        ("", "", "") if secret else (rule.badge, _localized(rule.title), _localized(rule.description))
    )
    shown = AchievementProgress(way.need, way.need) if earned_at else AchievementProgress(0, 1) if secret else way
    return AchievementView(rule.id, badge, title, description, rule.hidden, rule.xp, earned_at, shown)
