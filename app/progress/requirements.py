"""The current requirements: what completes lessons, which achievements exist, and what follows from events. Pure.

Awards are never taken back: if requirements change, they only decide what is awarded next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import NamedTuple

from app.progress.achievement_file import Achievement, AchievementCondition, AchievementProgress, matches_any
from app.progress.events import LearningEvent
from app.progress.levels import level_for_xp
from app.progress.streaks import compute_streak

LESSON_XP = 10
MODULE_XP = 50
COURSE_XP = 100
UNJUDGED_XP = 2
"""Of a lesson, module or course without any exercise: runs and clicks alone complete it."""


class LessonTask(NamedTuple):
    """A task in a lesson, as the ledger names it."""

    kind: str
    """``exercise``, ``prediction`` or ``quiz``."""
    subject: str
    """``course/slug#name``."""


@dataclass(frozen=True)
class CourseRequirements:
    """The requirements of a course: its modules in order, with their lessons."""

    slug: str
    modules: Mapping[str, tuple[str, ...]]
    """``course/module`` to its lessons, each ``course/slug``."""

    @cached_property
    def lessons(self) -> tuple[str, ...]:
        """All lessons, in order."""
        return tuple(lesson for lessons in self.modules.values() for lesson in lessons)


@dataclass(frozen=True)
class Requirements:
    """Everything that can be earned."""

    courses: Mapping[str, CourseRequirements] = field(default_factory=dict)
    cells: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """``course/slug`` to the cells that must run, each ``course/slug#cell``. A lesson that cannot be read is missing
    here and cannot be completed meanwhile."""
    minutes: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[Achievement, ...] = ()
    tasks: Mapping[str, frozenset[LessonTask]] = field(default_factory=dict)
    """``course/slug`` to its tasks: exercises to pass, predictions and quizzes to answer. A lesson without tasks is
    completed by running its cells and reading to its end."""

    @cached_property
    def modules(self) -> Mapping[str, tuple[str, ...]]:
        """The lessons of every module."""
        return {name: lessons for course in self.courses.values() for name, lessons in course.modules.items()}

    def judges(self, lessons: Iterable[str]) -> bool:
        """Whether one of the lessons has an exercise."""
        return any(task.kind == "exercise" for lesson in lessons for task in self.tasks.get(lesson, ()))


class LearnerEvents:
    """A learner's events by kind, with their times."""

    def __init__(self) -> None:
        self.by_kind: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
        self.xp = 0

    def add(self, fact: LearningEvent, at: datetime) -> bool:
        """Add an event. Returns False if it was known; then the earlier time is kept."""
        there = self.by_kind[fact.kind]
        known = there.get(fact.subject)
        there[fact.subject] = at if known is None else min(at, known)
        if known is None:
            self.xp += fact.xp
        return known is None

    def completed_at(self, lesson: str, terms: Requirements) -> datetime | None:
        """When the last event that completes a lesson happened; None if one is missing."""
        if tasks := terms.tasks.get(lesson):
            done = [self.by_kind[task.kind].get(task.subject) for task in tasks]
            moments = [moment for moment in done if moment is not None]
            return max(moments) if len(moments) == len(tasks) else None
        cells, read = self.by_kind["cell"], self.by_kind["read"].get(lesson)
        needed = terms.cells.get(lesson)
        if read is None or needed is None or not needed <= cells.keys():
            return None
        return max([read, *(cells[cell] for cell in needed)])


def derive_events(known: LearnerEvents, terms: Requirements, at: datetime) -> list[LearningEvent]:
    """Add the new events that follow from all known ones, and return them.

    An event that follows once keeps following whatever is added, so the order of events does not matter in the end.
    """
    new: list[LearningEvent] = []
    while more := [fact for fact in list(_due_events(known, terms)) if known.add(fact, at)]:
        new += more
    return new


def _due_events(known: LearnerEvents, terms: Requirements) -> Iterable[LearningEvent]:
    lessons = known.by_kind["lesson"].keys()
    for lesson in (known.by_kind["read"].keys() | terms.tasks.keys()) - lessons:
        if known.completed_at(lesson, terms) is not None:
            worth = LESSON_XP if terms.judges((lesson,)) else UNJUDGED_XP
            yield LearningEvent("lesson", lesson, worth if terms.cells[lesson] or terms.tasks.get(lesson) else 0)
    for course in terms.courses.values():
        for module, needed_lessons in course.modules.items():
            if needed_lessons and lessons >= set(needed_lessons):
                worth = MODULE_XP if terms.judges(needed_lessons) else UNJUDGED_XP
                yield LearningEvent("module", module, worth)
        if course.lessons and lessons >= set(course.lessons):
            worth = COURSE_XP if terms.judges(course.lessons) else UNJUDGED_XP
            yield LearningEvent("course", course.slug, worth)
    for rule in terms.rules:
        if rule.id not in known.by_kind["achievement"] and achievement_progress(rule, known, terms).done:
            yield LearningEvent("achievement", rule.id, rule.xp)


def achievement_progress(rule: Achievement, known: LearnerEvents, terms: Requirements) -> AchievementProgress:
    steps = [_condition_progress(need, known, terms) for need in rule.needs]
    return AchievementProgress(sum(min(step.have, step.need) for step in steps), sum(step.need for step in steps))


def _condition_progress(need: AchievementCondition, known: LearnerEvents, terms: Requirements) -> AchievementProgress:
    if need.module:
        return _part_progress(terms.modules.get(need.module, ()), need.module in known.by_kind["module"], known)
    if need.course:
        course = terms.courses.get(need.course)
        return _part_progress(course.lessons if course else (), need.course in known.by_kind["course"], known)
    if need.streak:
        return AchievementProgress(longest_streak(known.by_kind["day"]), need.streak)
    if need.level:
        return AchievementProgress(level_for_xp(known.xp).number, need.level)
    subjects = known.by_kind[need.kind]
    if need.all:
        return AchievementProgress(
            sum(any(matches_any((one,), subject) for subject in subjects) for one in need.all), len(need.all)
        )
    return AchievementProgress(sum(matches_any(need.of, subject) for subject in subjects), need.count)


def _part_progress(lessons: Collection[str], done: bool, known: LearnerEvents) -> AchievementProgress:
    """A module or course that was completed stays completed, even if lessons are added later."""
    most = max(1, len(lessons))
    return AchievementProgress(
        most if done else min(most - 1, len(known.by_kind["lesson"].keys() & set(lessons))), most
    )


def longest_streak(days: Iterable[str]) -> int:
    """The longest streak in ISO dates, as the ledger stores them."""
    active = [date.fromisoformat(day) for day in days]
    return compute_streak(active, max(active)).longest if active else 0
