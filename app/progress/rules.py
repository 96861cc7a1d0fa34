"""Achievements as data: ``lessons/achievements.toml``, what its conditions mean, and how far someone is. Pure.

docs/progress.md says how an achievement is written.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.lessons.course_file import Words
from app.lessons.directives import Fault


@dataclass(frozen=True, slots=True)
class Need:
    """One condition. Exactly one of ``kind``, ``module``, ``course``, ``streak`` and ``level`` is given."""

    kind: str = ""
    of: tuple[str, ...] = ("*",)
    """Which subjects of the kind count; ``*`` stands for anything."""
    count: int = 1
    """How many different ones."""
    all: tuple[str, ...] = ()
    """In place of a count: each of these patterns by some subject."""
    module: str = ""
    """``course/module``: every lesson of it completed."""
    course: str = ""
    streak: int = 0
    """Weeks of the longest streak."""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One achievement in all languages."""

    id: str
    badge: str
    """The name of its drawing."""
    xp: int
    hidden: bool
    """Not told of before it is earned."""
    title: Words
    description: Words
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Towards:
    """How far someone is: ``have`` of ``need``."""

    have: int
    need: int

    @property
    def done(self) -> bool:
        """Whether it is due."""
        return self.have >= self.need


def read_rules(text: str) -> tuple[tuple[Rule, ...] | None, list[Fault]]:
    """Read the file's text; None if it has a fault."""
    raise NotImplementedError


def matching(patterns: Collection[str], subject: str) -> bool:
    """Whether a subject fits one of the patterns."""
    raise NotImplementedError
