"""What translations have yet to follow: changed paragraphs of a lesson, changed texts of a course. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.course_file import CourseSource, LocalizedList, LocalizedText, line_of_key

_FENCE = re.compile(r"(`{3,}|:{3,})")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, a list, a directive or the front matter, and its first line, from 1."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class ChangedParagraphs:
    """Paragraphs that replace others. One of the two is empty if they were added or removed."""

    before: tuple[Paragraph, ...]
    now: tuple[Paragraph, ...]
    line: int
    """Where they are now, or where the removed ones were."""


@dataclass(frozen=True, slots=True)
class CourseText:
    """A text or a list of ``course.toml``."""

    line: int
    """Where it begins."""
    entries: LocalizedList
    """By language: those of the list, or the text alone."""

    def paragraphs(self, language: str = DEFAULT_LANGUAGE) -> tuple[Paragraph, ...]:
        return tuple(Paragraph(entry, self.line) for entry in self.entries.get(language, ()))


def split_paragraphs(source: str) -> Iterator[Paragraph]:
    """Split a lesson's text at blank lines; a fence is one paragraph, with all that it contains."""
    rows: list[str] = []
    first, fence = 1, ""
    for number, row in enumerate(source.split("\n"), 1):
        mark = _FENCE.match(row)
        if fence and mark and mark[1].startswith(fence) and not row.strip(mark[1][0]).strip():
            fence = ""
        elif not fence and mark:
            fence = mark[1]
        if not row.strip() and not fence:
            if rows:
                yield Paragraph("\n".join(rows), first)
            rows = []
            continue
        if not rows:
            first = number
        rows.append(row)
    if rows:
        yield Paragraph("\n".join(rows), first)


def changed_paragraphs(before: str, now: str) -> Iterator[ChangedParagraphs]:
    """Yield what differs between two versions of a text, in order."""
    end = now.count("\n") + 1
    yield from compare_paragraphs(list(split_paragraphs(before)), list(split_paragraphs(now)), end)


def compare_paragraphs(old: Sequence[Paragraph], new: Sequence[Paragraph], end: int) -> Iterator[ChangedParagraphs]:
    """Yield what differs. ``end`` is the line of what was removed at the end."""
    matcher = difflib.SequenceMatcher(None, [one.text for one in old], [one.text for one in new], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            line = new[j1].line if j1 < len(new) else end
            yield ChangedParagraphs(tuple(old[i1:i2]), tuple(new[j1:j2]), line)


def course_texts(course: CourseSource, toml: str) -> Mapping[tuple[str, str], CourseText]:
    """What a course says in English, and its translations, by the slug of a module, or "", and the key."""
    own = {"title": course.title, "summary": course.summary, "audience": course.audience}
    lists = {"prerequisites": course.prerequisites, "outcomes": course.outcomes}
    texts: dict[tuple[str, str], LocalizedList] = {("", key): _as_lists(words) for key, words in own.items()}
    texts |= {("", key): words for key, words in lists.items()}
    for module in course.modules:
        texts[module.slug, "title"] = _as_lists(module.title)
    lines = {module.slug: module.line for module in course.modules} | {"": 1}
    return {
        (module, key): CourseText(line_of_key(toml, key, lines[module]), entries)
        for (module, key), entries in texts.items()
        if any(entries[DEFAULT_LANGUAGE])
    }


def _as_lists(words: LocalizedText) -> LocalizedList:
    return {language: (text,) for language, text in words.items()}
