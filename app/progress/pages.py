"""What the templates of progress show, made from what the summary and the ledger say. Pure, in the language in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from markupsafe import Markup

from app.errors import Problem
from app.i18n import N_, gettext
from app.lessons.catalog import CatalogView
from app.lessons.machines import topology_words
from app.lessons.model import Lesson
from app.progress.badges import HIDDEN, badge
from app.progress.history import HistoryPage
from app.progress.levels import Level
from app.progress.summary import AchievementView, LessonState, News, NewsItem, Stage
from app.progress.zones import local

KINDS: Mapping[str, str] = {
    "achievement": N_("Achievement"),
    "cell": N_("Cell"),
    "course": N_("Course"),
    "helpful": N_("Helpful comment"),
    "lesson": N_("Lesson"),
    "module": N_("Module"),
    "strategy": N_("Strategy"),
    "topology": N_("Machine"),
}
"""What an award was for, in a word."""
DONE = {Stage.completed, Stage.revisited}
_ON_A_CARD: Mapping[str, str] = {
    "achievement": N_("Achievement"),
    "lesson": N_("Lesson done"),
    "module": N_("Module done"),
    "course": N_("Course done"),
}
_DRAWINGS: Mapping[str, str] = {"lesson": "first-lesson", "module": "module", "course": "course"}


@dataclass(frozen=True, slots=True)
class Badge:
    """An achievement with its drawing."""

    title: str
    description: str
    drawn: Markup
    xp: int
    earned_at: datetime | None
    have: int
    need: int

    @property
    def share(self) -> int:
        """How much of the way is gone, 0 to 100."""
        return min(100, 100 * self.have // self.need)


@dataclass(frozen=True, slots=True)
class Card:
    """An award as it is shown at once."""

    key: str
    kind: str
    title: str
    description: str
    xp: int
    drawn: Markup | None = None
    level: int | None = None
    """In place of a drawing: the level that was reached."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the history."""

    at: datetime
    kind: str
    title: str
    xp: int


def share_of(level: Level) -> int:
    """How much of the level is gone, 0 to 100."""
    return 100 * level.within // level.size


def badges(views: Iterable[AchievementView], where: ZoneInfo) -> tuple[list[Badge], list[Badge], list[Badge]]:
    """Those that are earned, the newest first; those still to come, the nearest first; and those kept secret."""
    earned: list[Badge] = []
    towards: list[Badge] = []
    secret: list[Badge] = []
    for view in views:
        place = earned if view.earned_at else secret if view.hidden else towards
        place.append(_badge(view, HIDDEN if place is secret else view.badge, where))
    earned.sort(key=lambda one: one.earned_at or datetime.min, reverse=True)
    towards.sort(key=lambda one: one.share, reverse=True)
    return earned, towards, secret


def _badge(view: AchievementView, drawing: str, where: ZoneInfo) -> Badge:
    at = local(view.earned_at, where) if view.earned_at else None
    have, need = min(view.towards.have, view.towards.need), view.towards.need
    return Badge(view.title, view.description, badge(drawing), view.xp, at, have, need)


def cards(news: News) -> list[Card]:
    """What deserves a word on the page: achievements, whole lessons and more, and a level at last."""
    found = [_card(item) for item in news.items if item.kind in _ON_A_CARD]
    level = news.level
    if level.number > news.level_before:
        words = gettext("%(xp)s XP to level %(number)s") % {"xp": level.missing, "number": level.number + 1}
        title = gettext("Level %(number)s") % {"number": level.number}
        found.append(Card(f"level {level.number}", gettext("Level reached"), title, words, 0, level=level.number))
    return found


def _card(item: NewsItem) -> Card:
    drawing = _DRAWINGS.get(item.kind) or item.badge
    return Card(item.key, gettext(_ON_A_CARD[item.kind]), item.title, item.description, item.xp, badge(drawing))


def rows(
    page: HistoryPage, catalog: CatalogView, language: str, views: Iterable[AchievementView], where: ZoneInfo
) -> list[Row]:
    """The lines of a page of the history, in words."""
    titles = {view.id: view.title for view in views}
    return [
        Row(
            local(entry.at, where),
            gettext(KINDS[entry.kind]) if entry.kind in KINDS else entry.kind,
            titles.get(entry.subject, entry.subject)
            if entry.kind == "achievement"
            else _title(entry.kind, entry.subject, catalog, language),
            entry.xp,
        )
        for entry in page.entries
    ]


def _title(kind: str, subject: str, catalog: CatalogView, language: str) -> str:
    """What a subject of the ledger is called; as it is where the lessons have it no more."""
    whole, _, cell_name = subject.partition("#")
    course, _, name = whole.partition("/")
    try:
        match kind:
            case "cell":
                lesson = catalog.lesson(course, name, language)
                cell = lesson.cell(cell_name)
                return f"{cell.title if cell else cell_name} · {lesson.title}"
            case "lesson":
                return catalog.lesson(course, name, language).title
            case "module":
                return {m.slug: m.title for m in catalog.course(course, language).modules}.get(name, subject)
            case "course":
                return catalog.course(course, language).title
            case "topology":
                return topology_words(subject)
            case _:
                return subject
    except (Problem, ValueError):
        return subject


def lessons_done(outlines: Mapping[str, Iterable[LessonState]], catalog: CatalogView, language: str) -> list[Lesson]:
    """The lessons that are completed, course by course."""
    done = {(course, state.slug) for course, states in outlines.items() for state in states if state.stage in DONE}
    return [
        entry.lesson
        for course in outlines
        for entry in catalog.outline(course, language).lessons
        if entry.lesson and (course, entry.slug) in done
    ]
