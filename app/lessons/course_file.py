"""``course.toml``: what a course says of itself in each language, and its modules and lessons in order.

::

    title.en = "Distributed TensorFlow"
    summary.en = "One model, many devices."
    audience.en = "For people who train models on one device."
    prerequisites.en = ["Python and NumPy", "A browser"]
    outcomes.en = ["distribute a training loop"]

    [[modules]]
    slug = "one-machine"
    title.en = "One machine"
    lessons = ["distribution-strategies", "scaling-the-loss"]

A text may also be a plain string, ``title = "…"``, and a list a plain list; then they are in English. ``audience``,
``prerequisites`` and ``outcomes`` may be missing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from app.i18n import DEFAULT_LANGUAGE, LANGUAGE_CODES
from app.lessons.added_courses import AddedCourse
from app.lessons.directives import LessonError, lesson_warning
from app.lessons.front_matter import MAX_SLUG_LENGTH, SLUG_PATTERN
from app.lessons.model import Course, Module

_TOML_POSITION = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)")

LocalizedText = Mapping[str, str]
"""A text by language; there is always an English one, which is empty if the course does not have the text."""
LocalizedList = Mapping[str, tuple[str, ...]]
"""The same for a list of texts."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module, in all languages."""

    slug: str
    title: LocalizedText
    lessons: tuple[str, ...]
    line: int = field(default=1, compare=False)
    """Where it begins."""


@dataclass(frozen=True, slots=True)
class CourseSource:
    """A course, in all languages."""

    slug: str
    title: LocalizedText
    summary: LocalizedText
    audience: LocalizedText
    prerequisites: LocalizedList
    outcomes: LocalizedList
    modules: tuple[ModuleSource, ...]
    cover: Path | None = None
    origin: AddedCourse | None = None
    """Where it comes from, if ``lockstep course add`` has copied it."""

    @property
    def lessons(self) -> tuple[str, ...]:
        """The slugs of all lessons, in order."""
        return tuple(slug for module in self.modules for slug in module.lessons)

    def without(self, slugs: Collection[str]) -> CourseSource:
        """The course without these lessons, and without modules that have no other lessons."""
        modules = (replace(m, lessons=tuple(slug for slug in m.lessons if slug not in slugs)) for m in self.modules)
        left = (
            after for before, after in zip(self.modules, modules, strict=True) if after.lessons or not before.lessons
        )
        return replace(self, modules=tuple(left))

    def speaking(self, language: str) -> Course:
        """The course in one language; missing texts are in English."""
        modules = tuple(Module(m.slug, localized(m.title, language), m.lessons) for m in self.modules)
        return Course(
            slug=self.slug,
            title=localized(self.title, language),
            summary=localized(self.summary, language),
            audience=localized(self.audience, language),
            prerequisites=localized(self.prerequisites, language),
            outcomes=localized(self.outcomes, language),
            modules=modules,
            cover=self.cover,
        )


def localized(words: Mapping[str, _T], language: str) -> _T:
    """The text, or the list, in that language, or in English if it is not translated. Pure."""
    return words.get(language) or words[DEFAULT_LANGUAGE]


def parse_course(text: str, slug: str) -> tuple[CourseSource | None, list[LessonError]]:
    """Parse the file of the course ``slug``: what could be read of it, None if it is not TOML, and its errors."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as e:
        return None, [_toml_error(text, str(e) or "it is nested too deeply")]
    reader = _CourseParser(text, [])
    return reader.course(table, slug), reader.faults


def line_of_key(text: str, key: str, after: int = 1) -> int:
    """The first line at or after ``after`` that begins with the key, which may be a table's; else ``after``. Pure."""
    rows = enumerate(text.split("\n"), 1)
    return next((i for i, row in rows if i >= after and row.lstrip(" \t[").startswith(key)), after)


def _is_slug(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_SLUG_LENGTH and bool(SLUG_PATTERN.fullmatch(value))


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)


def _toml_error(text: str, reason: str) -> LessonError:
    match = _TOML_POSITION.search(reason)
    line = int(match[1]) if match and match[1] else (text.count("\n") + 1 if match else 1)
    reason = _TOML_POSITION.sub("", reason)
    return LessonError(line, f'this is not TOML: {reason}; write key = "text", [[modules]] and lessons = ["…"]')


@dataclass(slots=True)
class _CourseParser:
    """Collects errors. The TOML parser reports no line numbers, so they are searched for in the text."""

    text: str
    faults: list[LessonError]

    def course(self, table: dict[str, Any], slug: str) -> CourseSource:
        self.keys(table, ("title", "summary", "audience", "prerequisites", "outcomes", "modules"), 1)
        entries = table.get("modules")
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            self.faults.append(
                LessonError(
                    self.line_of("modules"), "the course has no modules; add a section that starts with [[modules]]"
                )
            )
            entries = []
        lines = [i for i, row in enumerate(self.text.split("\n"), 1) if re.match(r"\s*\[\[\s*modules\s*\]\]", row)]
        lines += [1] * (len(entries) - len(lines))
        modules = tuple(self.module(entry, line) for entry, line in zip(entries, lines, strict=False))
        self.repeated([module.slug for module in modules if module.slug], "module")
        self.repeated([lesson for module in modules for lesson in module.lessons], "lesson")
        return CourseSource(
            slug=slug,
            title=self.words(table, "title", 1),
            summary=self.words(table, "summary", 1),
            audience=self.optional_words(table, "audience"),
            prerequisites=self.optional_list(table, "prerequisites"),
            outcomes=self.optional_list(table, "outcomes"),
            modules=modules,
        )

    def module(self, entry: dict[str, Any], line: int) -> ModuleSource:
        self.keys(entry, ("slug", "title", "lessons"), line)
        lessons = entry.get("lessons", [])
        if not isinstance(lessons, list) or not all(isinstance(slug, str) for slug in lessons):
            self.faults.append(
                LessonError(line, "'lessons' must be a list of folders; write lessons = [\"first-lesson\"]")
            )
            lessons = []
        if "slug" not in entry:
            self.faults.append(LessonError(line, 'the module has no slug; write slug = "first-steps"'))
        for slug in ([entry["slug"]] if "slug" in entry else []) + lessons:
            if not _is_slug(slug):
                at = self.line_of(str(slug), line)
                self.faults.append(
                    LessonError(
                        at, f"{str(slug)[:60]!r} is not a valid slug; use lowercase letters, digits, and hyphens"
                    )
                )
        title = self.words(entry, "title", line)
        return ModuleSource(str(entry.get("slug", "")), title, tuple(filter(_is_slug, lessons)), line)

    def words(self, table: dict[str, Any], key: str, line: int) -> LocalizedText:
        value = table.get(key)
        value = {DEFAULT_LANGUAGE: value} if isinstance(value, str) else value
        if not isinstance(value, dict) or not all(isinstance(said, str) for said in value.values()):
            self.faults.append(LessonError(line, f"'{key}' is missing or not a string; write {key}.en = \"…\""))
            return {DEFAULT_LANGUAGE: ""}
        self.languages(value, key, line)
        if not value.get(DEFAULT_LANGUAGE, "").strip():
            self.faults.append(
                LessonError(self.line_of(key, line), f"'{key}' has no English text; write {key}.en = \"…\"")
            )
            return {DEFAULT_LANGUAGE: ""}
        return {language: said.strip() for language, said in value.items() if said.strip()}

    def optional_words(self, table: dict[str, Any], key: str) -> LocalizedText:
        return self.words(table, key, line_of_key(self.text, key)) if key in table else {DEFAULT_LANGUAGE: ""}

    def optional_list(self, table: dict[str, Any], key: str) -> LocalizedList:
        if key not in table:
            return {DEFAULT_LANGUAGE: ()}
        value, line = table[key], line_of_key(self.text, key)
        value = {DEFAULT_LANGUAGE: value} if isinstance(value, list) else value
        if not isinstance(value, dict) or not all(map(_is_list_of_texts, value.values())):
            self.faults.append(LessonError(line, f"'{key}' must be a list of strings; write {key}.en = [\"…\"]"))
            return {DEFAULT_LANGUAGE: ()}
        self.languages(value, key, line)
        if not value.get(DEFAULT_LANGUAGE):
            self.faults.append(LessonError(line, f"'{key}' has no English list; write {key}.en = [\"…\"]"))
            return {DEFAULT_LANGUAGE: ()}
        self.lengths(value, key, line)
        return {language: tuple(map(str.strip, texts)) for language, texts in value.items() if texts}

    def lengths(self, lists: Mapping[str, list[str]], key: str, line: int) -> None:
        """Warn of translations of a list that lack entries, or have too many."""
        english = len(lists[DEFAULT_LANGUAGE])
        for language, texts in lists.items():
            if texts and len(texts) != english:
                said = f"has another length in '{language[:20]}', {len(texts)}, than in English, {english}"
                at = line_of_key(self.text, f"{key}.{language}", line)
                self.faults.append(lesson_warning(at, f"the list '{key}' {said}; translate every entry"))

    def languages(self, value: Mapping[str, object], key: str, line: int) -> None:
        for language in value:
            if language not in LANGUAGE_CODES:
                at = self.line_of(f"{key}.{language}", line)
                self.faults.append(
                    LessonError(at, f"unknown language '{language[:20]}' of '{key}'; use {', '.join(LANGUAGE_CODES)}")
                )

    def keys(self, table: dict[str, Any], known: tuple[str, ...], line: int) -> None:
        for key in table:
            if key not in known:
                self.faults.append(
                    LessonError(self.line_of(key, line), f"unknown key '{key[:40]}'; use one of {', '.join(known)}")
                )

    def repeated(self, slugs: list[str], noun: str) -> None:
        for slug in dict.fromkeys(slugs):
            if slugs.count(slug) > 1:
                line = self.line_of(slug, self.line_of(slug) + 1)
                self.faults.append(LessonError(line, f"the {noun} '{slug[:60]}' is listed twice; keep one"))

    def line_of(self, words: str, after: int = 1) -> int:
        """The first line at or after ``after`` that contains the text; else ``after``, or the last line."""
        rows = self.text.split("\n")
        found = (i for i, row in enumerate(rows, 1) if i >= after and words in row)
        return next(found, min(after, len(rows)))
