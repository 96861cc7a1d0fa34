"""The current achievements, reloaded when their file changes; if it has errors, the last valid version stays in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import structlog

from app.lessons.catalog import Catalog, CatalogView
from app.lessons.directives import LessonError
from app.lessons.document import LessonDecodeError, decode_source
from app.lessons.errors import CourseNotFound, LessonFileError
from app.progress.achievement_file import Achievement, AchievementCondition, parse_achievements
from app.progress.badges import badge_names
from app.progress.code_analysis import STRATEGY_CLASSES
from app.web.dependencies import AppKey

ACHIEVEMENTS_FILE = "achievements.toml"
_log = structlog.get_logger("achievements")


class AchievementCatalog:
    """The achievements in ``achievements.toml``, next to the courses; empty without that file."""

    def __init__(self, catalog: Catalog, *, quiet: bool = False) -> None:
        self.path = catalog.root / ACHIEVEMENTS_FILE
        self.rules: tuple[Achievement, ...] = ()
        self.mistakes: tuple[LessonFileError, ...] = ()
        self._catalog = catalog
        self._quiet = quiet

    def reload(self) -> None:
        """Read the current file. Call it after the catalog was read."""
        before = self.mistakes
        rules, faults = self._read()
        if rules is not None:
            faults = [*_missing_badges(rules), *_unknown_references(rules, self._catalog.with_drafts)]
            if rules != self.rules and not any(fault.blocks for fault in faults):
                self.rules = rules  # unchanged rules stay the same object, because each request compares them
        self.mistakes = tuple(LessonFileError(self.path, fault.line, fault.text, fault.blocks) for fault in faults)
        for mistake in self.mistakes:
            if mistake not in before and not self._quiet:
                _log.warning("achievements_mistake", where=f"{mistake.path}:{mistake.line}", what=mistake.text)

    def _read(self) -> tuple[tuple[Achievement, ...] | None, list[LessonError]]:
        try:
            return parse_achievements(decode_source(self.path.read_bytes()))
        except FileNotFoundError:
            return (), []
        except LessonDecodeError as e:
            return None, [e.fault]
        except OSError as e:
            return None, [LessonError(1, f"the file cannot be read: {e.strerror}; check its permissions")]


ACHIEVEMENTS = AppKey[AchievementCatalog]("achievements")


def _missing_badges(rules: tuple[Achievement, ...]) -> Iterator[LessonError]:
    for rule in rules:
        if rule.badge not in badge_names():
            yield LessonError(rule.line, f"there is no badge '{rule.badge}'; use one of {_sorted_names(badge_names())}")


def _unknown_references(rules: tuple[Achievement, ...], catalog: CatalogView) -> Iterator[LessonError]:
    """Yield an error for each unknown name. Such a rule cannot be earned yet but does not block the file."""
    for rule in rules:
        for need in rule.needs:
            if text := _unknown_reference(need, catalog):
                yield LessonError(rule.line, text, False)


def _unknown_reference(need: AchievementCondition, catalog: CatalogView) -> str:
    if need.module or need.course:
        slug, _, module = (need.module or need.course).partition("/")
        try:
            modules = [module.slug for module in catalog.course(slug, "en").modules]
        except CourseNotFound:
            return f"there is no course '{slug}'; use one of {_sorted_names(c.slug for c in catalog.courses('en'))}"
        return (
            f"there is no module '{module}'; use one of {_sorted_names(modules)}"
            if module not in ["", *modules]
            else ""
        )
    if need.kind == "strategy":
        unknown = [name for name in (*need.all, *need.of) if "*" not in name and name not in STRATEGY_CLASSES]
        return f"there is no strategy '{unknown[0]}'; use one of {_sorted_names(STRATEGY_CLASSES)}" if unknown else ""
    if need.kind in ("lesson", "read", "revisit"):
        there = {lesson.key for lesson in catalog.every()}
        unknown = [name for name in (*need.all, *need.of) if "*" not in name and name not in there]
        return f"there is no lesson '{unknown[0]}'; use one of {_sorted_names(there)}" if unknown else ""
    if need.kind == "cell":
        cells = {f"{lesson.key}#{cell.name}" for lesson in catalog.every() for cell in lesson.cells}
        unknown = [name for name in (*need.all, *need.of) if "*" not in name and name not in cells]
        return f"there is no cell '{unknown[0]}'; write course/lesson#cell" if unknown else ""
    return ""


def _sorted_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
