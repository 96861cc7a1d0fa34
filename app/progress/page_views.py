"""View models for the templates of progress, made from the summary and the ledger. Pure, in the current language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from markupsafe import Markup

from app.errors import LockstepError
from app.i18n import N_, gettext
from app.lessons.catalog import CatalogView
from app.lessons.machine_labels import topology_label
from app.lessons.model import Lesson
from app.progress.badges import HIDDEN_BADGE, badge_svg
from app.progress.history import HistoryPage
from app.progress.levels import Level
from app.progress.requirements import LessonTask
from app.progress.summary import AchievementView, LessonStage, LessonState, NewsItem, ProgressNews

KIND_LABELS: Mapping[str, str] = {
    "achievement": N_("Achievement"),
    "cell": N_("Cell"),
    "check": N_("Check"),
    "course": N_("Course"),
    "exercise": N_("Exercise"),
    "helpful": N_("Helpful comment"),
    "lesson": N_("Lesson"),
    "module": N_("Module"),
    "prediction": N_("Prediction"),
    "quiz": N_("Question"),
    "strategy": N_("Strategy"),
    "topology": N_("Machine"),
}
"""A short label for each kind of award."""
DONE_STAGES = {LessonStage.completed, LessonStage.revisited}
_CARD_LABELS: Mapping[str, str] = {
    "achievement": N_("Achievement"),
    "exercise": N_("Exercise passed"),
    "lesson": N_("Lesson completed"),
    "module": N_("Module completed"),
    "course": N_("Course completed"),
}
_CARD_BADGES: Mapping[str, str] = {
    "exercise": "exercise",
    "lesson": "first-lesson",
    "module": "module",
    "course": "course",
}


@dataclass(frozen=True, slots=True)
class BadgeView:
    """An achievement with its badge."""

    title: str
    description: str
    drawn: Markup
    xp: int
    earned_at: datetime | None
    have: int
    need: int

    @property
    def share(self) -> int:
        """Progress toward it, in percent."""
        return min(100, 100 * self.have // self.need)


@dataclass(frozen=True, slots=True)
class AwardCard:
    """An award as a card that pops up."""

    key: str
    kind: str
    title: str
    description: str
    xp: int
    drawn: Markup | None = None
    level: int | None = None
    """Instead of a badge: the level that was reached."""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    at: datetime
    kind: str
    title: str
    xp: int


def level_percent(level: Level) -> int:
    """Progress within the level, in percent."""
    return 100 * level.within // level.size


def group_badges(
    views: Iterable[AchievementView], where: ZoneInfo
) -> tuple[list[BadgeView], list[BadgeView], list[BadgeView]]:
    """Three lists: earned (newest first), not earned yet (closest first), and secret."""
    earned: list[BadgeView] = []
    towards: list[BadgeView] = []
    secret: list[BadgeView] = []
    for view in views:
        place = earned if view.earned_at else secret if view.hidden else towards
        place.append(_badge_view(view, HIDDEN_BADGE if place is secret else view.badge, where))
    earned.sort(key=lambda one: one.earned_at or datetime.min, reverse=True)
    towards.sort(key=lambda one: one.share, reverse=True)
    return earned, towards, secret


def _badge_view(view: AchievementView, drawing: str, where: ZoneInfo) -> BadgeView:
    at = view.earned_at.astimezone(where) if view.earned_at else None
    have, need = min(view.towards.have, view.towards.need), view.towards.need
    return BadgeView(view.title, view.description, badge_svg(drawing), view.xp, at, have, need)


def award_cards(news: ProgressNews) -> list[AwardCard]:
    """Cards for news worth announcing: achievements, completed lessons and larger units, and finally a new level."""
    found = [_award_card(item) for item in news.items if item.kind in _CARD_LABELS]
    level = news.level
    if level.number > news.level_before:
        words = gettext("%(xp)s XP to level %(number)s") % {"xp": level.missing, "number": level.number + 1}
        title = gettext("Level %(number)s") % {"number": level.number}
        found.append(AwardCard(f"level {level.number}", gettext("Level reached"), title, words, 0, level=level.number))
    return found


def _award_card(item: NewsItem) -> AwardCard:
    drawing = _CARD_BADGES.get(item.kind) or item.badge
    return AwardCard(
        item.key, gettext(_CARD_LABELS[item.kind]), item.title, item.description, item.xp, badge_svg(drawing)
    )


def history_rows(
    page: HistoryPage, catalog: CatalogView, language: str, views: Iterable[AchievementView], where: ZoneInfo
) -> list[HistoryRow]:
    """The rows of a page of the history, with titles."""
    titles = {view.id: view.title for view in views}
    return [
        HistoryRow(
            entry.occurred_at.astimezone(where),
            gettext(KIND_LABELS[entry.kind]) if entry.kind in KIND_LABELS else entry.kind,
            titles.get(entry.subject, entry.subject)
            if entry.kind == "achievement"
            else _subject_title(entry.kind, entry.subject, catalog, language),
            entry.xp,
        )
        for entry in page.entries
    ]


def _subject_title(kind: str, subject: str, catalog: CatalogView, language: str) -> str:
    """The title of a ledger entry's subject; the subject itself if the lessons no longer have it."""
    whole, _, cell_name = subject.partition("#")
    course, _, name = whole.partition("/")
    try:
        match kind:
            case "cell" | "exercise":
                lesson = catalog.lesson(course, name, language)
                cell = lesson.cell(cell_name)
                return f"{cell.title if cell else cell_name} · {lesson.title}"
            case "check":
                lesson = catalog.lesson(course, name, language)
                cell_name, _, check = cell_name.partition("/")
                return f"{catalog.check_title(lesson.key, cell_name, check, language)} · {lesson.title}"
            case "prediction" | "quiz":
                lesson = catalog.lesson(course, name, language)
                asked = {one.name: one.question.striptags() for one in lesson.predictions if kind == "prediction"}
                asked |= {one.name: one.question.striptags() for one in lesson.quizzes if kind == "quiz"}
                return f"{asked.get(cell_name, cell_name)} · {lesson.title}"
            case "lesson":
                return catalog.lesson(course, name, language).title
            case "module":
                return {m.slug: m.title for m in catalog.course(course, language).modules}.get(name, subject)
            case "course":
                return catalog.course(course, language).title
            case "topology":
                return topology_label(subject)
            case _:
                return subject
    except (LockstepError, ValueError):
        return subject


@dataclass(frozen=True, slots=True)
class MissingTask:
    """Something left to do in a lesson, and the fragment of the page's URL where it is."""

    title: str
    anchor: str


@dataclass(frozen=True, slots=True)
class TaskTally:
    """How much of one kind of task is done in a lesson: ``exercise``, ``prediction`` or ``quiz``."""

    kind: str
    done: int
    total: int
    missing: tuple[MissingTask, ...]


def task_tallies(lesson: Lesson, done: Collection[LessonTask]) -> list[TaskTally]:
    """The tasks that complete a lesson, kind by kind; kinds that it does not have are left out."""
    tasks: dict[str, list[tuple[str, MissingTask]]] = {
        "exercise": [(cell.name, MissingTask(cell.title, f"cell-{cell.name}")) for cell in lesson.exercises],
        "prediction": [
            (one.name, MissingTask(one.question.striptags(), f"prediction-{one.name}")) for one in lesson.predictions
        ],
        "quiz": [(one.name, MissingTask(one.question.striptags(), f"quiz-{one.name}")) for one in lesson.quizzes],
    }
    tallies = []
    for kind, every in tasks.items():
        named = [each for each in every if each[0] not in lesson.optional]
        missing = tuple(task for name, task in named if LessonTask(kind, f"{lesson.key}#{name}") not in done)
        if named:
            tallies.append(TaskTally(kind, len(named) - len(missing), len(named), missing))
    return tallies


def completed_lessons(
    outlines: Mapping[str, Iterable[LessonState]], catalog: CatalogView, language: str
) -> list[Lesson]:
    """The completed lessons, course by course."""
    done = {
        (course, state.slug) for course, states in outlines.items() for state in states if state.stage in DONE_STAGES
    }
    return [
        entry.lesson
        for course in outlines
        for entry in catalog.outline(course, language).lessons
        if entry.lesson and (course, entry.slug) in done
    ]
