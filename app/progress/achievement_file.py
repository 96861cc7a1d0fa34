"""Parses ``lessons/achievements.toml`` and reports every error in it. Pure.

docs/teach/achievements.md describes the format.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.i18n import DEFAULT_LANGUAGE, LANGUAGE_CODES
from app.lessons.course_file import LocalizedText
from app.lessons.directives import LessonError
from app.lessons.front_matter import MAX_SLUG_LENGTH, SLUG_PATTERN

EVENT_KINDS = (
    "achievement",
    "cell",
    "check",
    "cluster",
    "course",
    "day",
    "exercise",
    "foresight",
    "helpful",
    "hour",
    "keras",
    "knew",
    "lesson",
    "long",
    "machine",
    "module",
    "night",
    "own",
    "prediction",
    "quiz",
    "read",
    "replicas",
    "revisit",
    "scaled",
    "strategy",
    "survived",
    "topology",
    "workers",
)
"""All kinds of learning events."""
MAX_ACHIEVEMENT_XP = 500
_KEYS = ("id", "badge", "xp", "hidden", "title", "description", "needs")
_MAX_NUMBER = 1000
_TOML_POSITION = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)")
_CONDITION_EXAMPLES = (
    'write needs = { kind = "cell", count = 5 }, { kind = "…", all = ["…"] }, { module = "…" }, { streak = 2 }, …'
)


@dataclass(frozen=True, slots=True)
class AchievementCondition:
    """One condition: a number of events of a kind, all events in a list, a module, a course, a streak or a level."""

    kind: str = ""
    of: tuple[str, ...] = ("*",)
    """Patterns of the subjects that count; ``*`` matches any text."""
    count: int = 1
    """How many different subjects are needed."""
    all: tuple[str, ...] = ()
    """Instead of a count: each of these patterns must match some subject."""
    module: str = ""
    """``course/module``: all of its lessons must be completed."""
    course: str = ""
    streak: int = 0
    """Weeks of the longest streak."""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Achievement:
    """An achievement, in all languages."""

    id: str
    badge: str
    """The name of its badge."""
    xp: int
    hidden: bool
    """Whether it is secret until it is earned."""
    title: LocalizedText
    description: LocalizedText
    needs: tuple[AchievementCondition, ...]
    line: int = 1


@dataclass(frozen=True, slots=True)
class AchievementProgress:
    """Progress toward an achievement: ``have`` of ``need``."""

    have: int
    need: int

    @property
    def done(self) -> bool:
        return self.have >= self.need


def matches_any(patterns: Collection[str], subject: str) -> bool:
    return any(pattern in ("*", subject) or bool(_compile_pattern(pattern).fullmatch(subject)) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def parse_achievements(text: str) -> tuple[tuple[Achievement, ...] | None, list[LessonError]]:
    """Parse the text of the file; None if it has errors."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as e:
        return None, [_toml_error(text, str(e) or "it is nested too deeply")]
    reader = _AchievementParser(text, [])
    rules = reader.rules(table)
    return (None if reader.faults else rules), sorted(reader.faults, key=lambda fault: fault.line)


def _toml_error(text: str, reason: str) -> LessonError:
    match = _TOML_POSITION.search(reason)
    line = int(match[1]) if match and match[1] else (text.count("\n") + 1 if match else 1)
    reason = _TOML_POSITION.sub("", reason)
    return LessonError(line, f'this is not TOML: {reason}; write [[achievements]] and key = "text"')


@dataclass(slots=True)
class _AchievementParser:
    """Collects errors. The TOML parser reports no line numbers, so they are searched for in the text."""

    text: str
    faults: list[LessonError]

    def rules(self, table: dict[str, Any]) -> tuple[Achievement, ...]:
        for key in table.keys() - {"achievements"}:
            self.fault(self.line_of(key), f"unknown key '{key[:40]}'; every achievement starts with [[achievements]]")
        entries = table.get("achievements", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self.fault(self.line_of("achievements"), "'achievements' must be a list; start each with [[achievements]]")
            return ()
        rows = enumerate(self.text.split("\n"), 1)
        lines = [i for i, row in rows if re.match(r"\s*\[\[\s*achievements\s*\]\]", row)]
        lines += [1] * (len(entries) - len(lines))
        rules = tuple(self.rule(entry, line) for entry, line in zip(entries, lines, strict=False))
        seen: dict[str, int] = {}
        for rule in rules:
            if rule.id and rule.id in seen:
                self.fault(rule.line, f"the achievement '{rule.id}' is defined twice, first on line {seen[rule.id]}")
            seen.setdefault(rule.id, rule.line)
        return rules

    def rule(self, entry: dict[str, Any], line: int) -> Achievement:
        for key in entry.keys() - set(_KEYS):
            self.fault(self.line_of(key, line), f"unknown key '{key[:40]}'; use one of {', '.join(_KEYS)}")
        name = self.slug(entry, "id", line)
        badge = self.slug(entry, "badge", line) if "badge" in entry else name
        xp, hidden = entry.get("xp", 0), entry.get("hidden", False)
        if not _is_whole_number(xp, 0, MAX_ACHIEVEMENT_XP):
            self.fault(self.line_of("xp", line), f"'xp' must be a whole number from 0 to {MAX_ACHIEVEMENT_XP}")
            xp = 0
        if not isinstance(hidden, bool):
            self.fault(self.line_of("hidden", line), "'hidden' must be true or false")
        title, description = self.words(entry, "title", line), self.words(entry, "description", line)
        return Achievement(
            name, badge, xp, hidden is True, title, description, self.needs(entry.get("needs"), line), line
        )

    def needs(self, value: Any, line: int) -> tuple[AchievementCondition, ...]:
        entries = value if isinstance(value, list) else [value]
        at = self.line_of("needs", line)
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            self.fault(at, f"'needs' is missing or empty; {_CONDITION_EXAMPLES}")
            return ()
        return tuple(need for entry in entries if (need := self.need(entry, at)) is not None)

    def need(self, entry: dict[str, Any], line: int) -> AchievementCondition | None:
        chosen = [key for key in ("kind", "module", "course", "streak", "level") if key in entry]
        if len(chosen) != 1:
            self.fault(line, f"a condition needs one of kind, module, course, streak, or level; {_CONDITION_EXAMPLES}")
            return None
        key = chosen[0]
        allowed = {"kind", "of", "count", "all"} if key == "kind" else {key}
        for other in entry.keys() - allowed:
            self.fault(line, f"'{other[:40]}' cannot be combined with '{key}'; {_CONDITION_EXAMPLES}")
        if key == "kind":
            return self.counted(entry, line)
        if key in ("streak", "level"):
            if not _is_whole_number(entry[key], 1, _MAX_NUMBER):
                self.fault(line, f"'{key}' must be a whole number from 1 to {_MAX_NUMBER}")
                return None
            return (
                AchievementCondition(streak=entry[key]) if key == "streak" else AchievementCondition(level=entry[key])
            )
        parts = entry[key].split("/") if isinstance(entry[key], str) else []
        if len(parts) != (2 if key == "module" else 1) or not all(SLUG_PATTERN.fullmatch(part) for part in parts):
            example = "distributed-tensorflow/one-machine" if key == "module" else "distributed-tensorflow"
            self.fault(line, f"'{key}' is not the name of a {key}; write {key} = \"{example}\"")
            return None
        return AchievementCondition(module=entry[key]) if key == "module" else AchievementCondition(course=entry[key])

    def counted(self, entry: dict[str, Any], line: int) -> AchievementCondition | None:
        kind, count = entry["kind"], entry.get("count", 1)
        if kind not in EVENT_KINDS:
            self.fault(line, f"unknown kind {str(kind)[:40]!r}; use one of {', '.join(EVENT_KINDS)}")
            return None
        if "all" in entry and ("of" in entry or "count" in entry):
            self.fault(line, "'all' cannot be combined with 'of' and 'count'; remove them")
        if not _is_whole_number(count, 1, _MAX_NUMBER):
            self.fault(line, f"'count' must be a whole number from 1 to {_MAX_NUMBER}")
            count = 1
        of, every = self.patterns(entry.get("of", "*"), "of", line), self.patterns(entry.get("all", ()), "all", line)
        if "all" in entry and not every:
            self.fault(line, "'all' is an empty list; list what is required")
        return AchievementCondition(kind=kind, of=of, count=count, all=every)

    def patterns(self, value: Any, key: str, line: int) -> tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not all(isinstance(one, str) and one for one in listed):
            self.fault(line, f'\'{key}\' must be a string or a list of strings, as in {key} = ["gpu:8", "tpu:*"]')
            return ()
        return tuple(listed)

    def slug(self, entry: dict[str, Any], key: str, line: int) -> str:
        value = entry.get(key)
        if not isinstance(value, str) or not SLUG_PATTERN.fullmatch(value) or len(value) > MAX_SLUG_LENGTH:
            found = "is missing" if value is None else f"cannot be {str(value)[:60]!r}"
            self.fault(self.line_of(key, line), f"'{key}' {found}; use lowercase letters, digits, and hyphens")
            return ""
        return value

    def words(self, entry: dict[str, Any], key: str, line: int) -> LocalizedText:
        value = entry.get(key)
        value = {DEFAULT_LANGUAGE: value} if isinstance(value, str) else value
        if not isinstance(value, dict) or not all(isinstance(said, str) for said in value.values()):
            self.fault(line, f"'{key}' is missing or not a string; write {key}.en = \"…\"")
            return {DEFAULT_LANGUAGE: ""}
        for language in value.keys() - set(LANGUAGE_CODES):
            at = self.line_of(f"{key}.{language}", line)
            self.fault(at, f"unknown language '{language[:20]}' of '{key}'; use {', '.join(LANGUAGE_CODES)}")
        if not value.get(DEFAULT_LANGUAGE, "").strip():
            self.fault(self.line_of(key, line), f"'{key}' has no English text; write {key}.en = \"…\"")
            return {DEFAULT_LANGUAGE: ""}
        return {language: said.strip() for language, said in value.items() if said.strip()}

    def fault(self, line: int, text: str) -> None:
        self.faults.append(LessonError(line, text))

    def line_of(self, words: str, after: int = 1) -> int:
        """The first line at or after ``after``, within the same achievement, that contains the text; else ``after``."""
        rows = self.text.split("\n")
        for i, row in enumerate(rows[after - 1 :], after):
            if i > after and row.lstrip().startswith("[["):
                break
            if words in row:
                return i
        return min(after, len(rows))


def _is_whole_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
