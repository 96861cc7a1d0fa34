"""What the pages show of a learner's progress, each in at most three queries.

Everything is of the language in use (``app.i18n.current``). A learner of None is a stranger: nothing done yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy.ext.asyncio import AsyncSession

from app.progress.levels import Level
from app.progress.rules import Towards
from app.progress.streaks import Streak


class Stage(StrEnum):
    """How far a lesson is."""

    new = "new"
    started = "started"
    completed = "completed"
    revisited = "revisited"
    """Completed, and opened again on a later day."""


@dataclass(frozen=True, slots=True)
class Header:
    """The figures of the header: one query, two with ``resume``."""

    level: Level
    lessons_done: int
    """Of the course, or of all courses."""
    lessons: int
    achievements_done: int
    achievements: int
    """All there are, hidden ones too."""
    percent: int
    """0 to 100: the course's lessons weighted by their minutes."""
    streak: Streak
    resume: Resume | None


@dataclass(frozen=True, slots=True)
class Resume:
    """Where the learner left: the lesson that was open last."""

    course: str
    slug: str
    title: str
    place: str
    """The id of a heading or cell, or ""."""


@dataclass(frozen=True, slots=True)
class LessonState:
    """One lesson of an outline."""

    slug: str
    stage: Stage
    cells_done: int
    cells: int
    """Cells that have to run before the lesson is completed."""
    end_reached: bool
    place: str


@dataclass(frozen=True, slots=True)
class AchievementView:
    """One achievement as the learner may see it."""

    id: str
    badge: str
    title: str
    """Empty, as is the description, for a hidden one that is not earned."""
    description: str
    hidden: bool
    xp: int
    earned_at: datetime | None
    towards: Towards


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One entry of the ledger worth a word on the page."""

    key: str
    """``kind subject``: the page shows each once."""
    kind: str
    subject: str
    xp: int
    title: str
    """Of the achievement, lesson, module or course; else ""."""
    description: str
    badge: str
    at: datetime


@dataclass(frozen=True, slots=True)
class News:
    """What is new since a cursor; ``since`` of the next question is ``cursor``."""

    cursor: str
    items: tuple[NewsItem, ...]
    xp: int
    """XP of the items."""
    level_before: int
    level: Level


class Summary:
    """Reads for the pages. One for each process, ``app.state.progress.summary``."""

    async def header(
        self, session: AsyncSession, learner_id: str | None, course: str | None = None, time_zone: str = "UTC"
    ) -> Header:
        """The figures of the header. ``course`` narrows lessons, per cent and ``resume`` to one course.

        Args:
            time_zone: of the learner: the account's, if there is one.
        """
        raise NotImplementedError

    async def outline(self, session: AsyncSession, learner_id: str | None, course: str) -> list[LessonState]:
        """The state of every lesson of a course, in order. Raises CourseUnknown."""
        raise NotImplementedError

    async def achievements(self, session: AsyncSession, learner_id: str | None) -> list[AchievementView]:
        """Every achievement in the order of the file."""
        raise NotImplementedError

    async def news(self, session: AsyncSession, learner_id: str | None, since: str) -> News:
        """What came into the ledger since a cursor; with an empty one nothing, only the cursor of now."""
        raise NotImplementedError
