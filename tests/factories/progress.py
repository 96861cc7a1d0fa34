"""A small course and a few achievements, for tests of the ledger."""

from __future__ import annotations

from app.progress.achievement_file import parse_achievements
from app.progress.events import LearningEvent
from app.progress.ledger import Ledger
from app.progress.requirements import UNJUDGED_XP, CourseRequirements, Requirements

_ACHIEVEMENTS = {
    "first": (20, '{ kind = "cell" }'),
    "three": (30, '{ kind = "cell", count = 3 }'),
    "both": (40, '{ kind = "strategy", all = ["Mirrored*", "TPUStrategy"] }'),
    "module": (50, '{ module = "c/one" }'),
    "course": (60, '[{ course = "c" }, { kind = "machine" }]'),
    "week": (25, "{ streak = 1 }"),
    "level": (75, "{ level = 2 }"),
    "collector": (10, '{ kind = "achievement", count = 3 }'),
}
"""XP of each and what it needs."""
_ONE = '[[achievements]]\nid = "{0}"\nxp = {1}\ntitle = "{0}"\ndescription = "{0}"\nneeds = {2}\n'
_RULES = "".join(_ONE.format(name, *said) for name, said in _ACHIEVEMENTS.items())


def small_requirements() -> Requirements:
    """Two modules; ``c/a`` has two cells, ``c/b`` one, ``c/d`` none."""
    rules, faults = parse_achievements(_RULES)
    assert rules is not None, faults
    course = CourseRequirements("c", {"c/one": ("c/a", "c/b"), "c/two": ("c/d",)})
    cells = {"c/a": frozenset({"c/a#1", "c/a#2"}), "c/b": frozenset({"c/b#1"}), "c/d": frozenset[str]()}
    return Requirements({"c": course}, cells, {"c/a": 10, "c/b": 20, "c/d": 5}, rules)


def small_ledger() -> Ledger:
    """A ledger with these requirements."""
    terms = small_requirements()
    return Ledger(lambda: terms)


POSSIBLE = (
    LearningEvent("cell", "c/a#1", 10),
    LearningEvent("cell", "c/a#2", 10),
    LearningEvent("cell", "c/b#1", 10),
    LearningEvent("cell", "c/gone#1", 10),
    LearningEvent("read", "c/a"),
    LearningEvent("read", "c/b"),
    LearningEvent("read", "c/d"),
    LearningEvent("strategy", "MirroredStrategy", 15),
    LearningEvent("strategy", "TPUStrategy", 15),
    LearningEvent("machine", "tpu"),
    *(LearningEvent("day", f"2026-11-{day}") for day in (16, 17, 18, 25)),
)
"""Facts that lead to all of it."""
EVERYTHING = 4 * 10 + 2 * 15 + 5 * UNJUDGED_XP + 20 + 30 + 40 + 50 + 60 + 25 + 75 + 10
"""XP of whoever has them all: two lessons, two modules and the course; c/d has no cell, so it is worth none."""
