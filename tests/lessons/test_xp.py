"""What the shipped course is worth: most of it is judged."""

from __future__ import annotations

from collections import Counter

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.catalog import Catalog
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.code_analysis import used_strategies
from app.progress.events import CELL_XP, PREDICTION_XP, QUIZ_XP, STRATEGY_XP, TOPOLOGY_XP
from app.progress.levels import xp_for_level
from app.progress.requirements import COURSE_XP, LESSON_XP, MODULE_XP
from tests.factories.shipped_lessons import shipped_catalog

CLAIMED = {
    *("cell", "own", "topology", "machine", "keras", "cluster", "workers", "survived"),
    *("strategy", "replicas", "scaled", "hour", "long", "night"),
}
"""The kinds of events that follow from a run alone."""


def course_xp(catalog: Catalog) -> Counter[str]:
    """The XP of all courses by kind of award, without achievements."""
    xp: Counter[str] = Counter()
    topologies: set[str] = set()
    strategies: set[str] = set()
    for course in catalog.courses(DEFAULT_LANGUAGE):
        outline = catalog.outline(course.slug, DEFAULT_LANGUAGE)
        xp["course"] += COURSE_XP
        xp["module"] += MODULE_XP * len(outline.modules)
        for lesson in [entry.lesson for entry in outline.lessons if entry.lesson is not None]:
            xp["lesson"] += LESSON_XP
            xp["cell"] += CELL_XP * len(lesson.cells)
            xp["prediction"] += PREDICTION_XP * len(lesson.predictions)
            xp["quiz"] += QUIZ_XP * len(lesson.quizzes)
            for cell in lesson.cells:
                topologies |= {cell.topology, *cell.topologies}
                strategies |= set(used_strategies(cell.code))
                if cell.exercise is not None:
                    xp["check"] += sum(check.xp for check in cell.exercise.checks)
                    xp["exercise"] += cell.exercise.xp
    return xp + Counter(topology=TOPOLOGY_XP * len(topologies), strategy=STRATEGY_XP * len(strategies))


def test_most_xp_of_the_course_comes_from_passed_checks() -> None:
    catalog = shipped_catalog()
    xp = course_xp(catalog)

    assert xp["check"] + xp["exercise"] > xp.total() / 2, xp


def test_an_achievement_that_runs_alone_earn_is_worth_little() -> None:
    catalog = shipped_catalog()
    book = AchievementCatalog(catalog, quiet=True)
    book.reload()
    claimed = [rule for rule in book.rules if all(need.kind in CLAIMED for need in rule.needs)]

    assert len(claimed) > 10
    assert {rule.id: rule.xp for rule in claimed if rule.xp > 5} == {}


def test_whoever_earns_everything_reaches_every_level_that_an_achievement_asks_for() -> None:
    catalog = shipped_catalog()
    book = AchievementCatalog(catalog, quiet=True)
    book.reload()
    rules = book.rules
    highest = max(need.level for rule in rules for need in rule.needs)
    others = sum(rule.xp for rule in rules if all(need.level < highest for need in rule.needs))

    assert course_xp(catalog).total() + others >= xp_for_level(highest)
