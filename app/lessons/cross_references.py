"""Errors between the files of courses: broken links, missing pictures, required lessons that cannot be read first, and
names that have moved from another lesson and are still in use there.

They never block: another file may be the cause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from app.i18n import DEFAULT_LANGUAGE
from app.lessons.analysis import LessonReference
from app.lessons.document import Document
from app.lessons.errors import LessonFileError
from app.lessons.inline_svg import InvalidSvg, inline_svg_file

_MOST_BROKEN = 100
"""How many broken links of one file are reported: looking for similar names takes long."""
_MOST_NAMES = 8
"""How many names an error lists. If there are more, it names those that look like the wrong one."""


def lesson_path(root: Path, course: str, slug: str, language: str) -> Path:
    """The path of a lesson's file."""
    return root / course / slug / ("lesson.md" if language == DEFAULT_LANGUAGE else f"lesson.{language}.md")


def reference_errors(
    root: Path, documents: Mapping[Path, Document], listed: Mapping[str, Sequence[str]]
) -> Iterator[LessonFileError]:
    """Yield the errors between the documents. ``listed`` has the lessons of each course."""
    lookup = _Lookup(root, documents, listed)
    for path, document in documents.items():
        broken = 0
        for reference in document.survey.references:
            problem = lookup.error(path, document.language, reference)
            if problem and broken == _MOST_BROKEN:
                text = f"more than {_MOST_BROKEN} links of this file are broken; correct those above first"
                yield LessonFileError(path, reference.line, text, blocks=False)
                break
            if problem:
                broken += 1
                yield LessonFileError(path, reference.line, problem, blocks=False)
        if document.language == DEFAULT_LANGUAGE and (circle := _circle(root, path, documents)):
            yield LessonFileError(path, document.header.requires_line, circle, blocks=False)
    yield from _moved_name_errors(documents)


def _moved_name_errors(documents: Mapping[Path, Document]) -> Iterator[LessonFileError]:
    """Yield errors for former names in another lesson (``lesson#name``) that lead to two things."""
    places: dict[tuple[Path, str], str] = {}
    """Where each name is in use or has led to so far."""
    moved: list[tuple[Path, int, str]] = []
    for path, document in documents.items():
        if document.language == DEFAULT_LANGUAGE:
            for item in document.named_items:
                for name in (item.name, *item.was):
                    if "#" in name:
                        moved.append((path, item.line, name))
                    else:
                        places[path.parent, name] = f"{path.parent.name}/{path.name}:{item.line}"
    for path, line, former in moved:
        slug, _, name = former.partition("#")
        place = places.setdefault((path.parent.parent / slug, name), here := f"{path.parent.name}/{path.name}:{line}")
        if place != here:
            text = f"'was' has '{former}', which {place} has; work under that name can go to one place only"
            yield LessonFileError(path, line, text, blocks=False)


def _circle(root: Path, path: Path, documents: Mapping[Path, Document]) -> str | None:
    """The error of a lesson that has to be read before itself."""
    course, slug = path.parent.parent.name, path.parent.name

    def required(lesson: str) -> tuple[str, ...]:
        document = documents.get(lesson_path(root, course, lesson, DEFAULT_LANGUAGE))
        return (document.header.requires or ()) if document is not None else ()

    if slug in required(slug):
        return f"'requires' names the lesson itself; remove '{slug}'"
    before = {slug}
    coming: list[tuple[str, ...]] = [(slug, lesson) for lesson in required(slug)]
    while coming:
        *path_there, lesson = coming.pop()
        if slug in required(lesson):
            circle = " → ".join((*path_there, lesson, slug))
            return f"'requires' goes in a circle: {circle}; remove one of these lessons from 'requires'"
        if lesson not in before:
            before.add(lesson)
            coming += [(*path_there, lesson, other) for other in required(lesson)]
    return None


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Finds what links lead to."""

    root: Path
    documents: Mapping[Path, Document]
    listed: Mapping[str, Sequence[str]]
    ids: dict[Path, frozenset[str]] = field(default_factory=dict)
    """Of the documents that a link with a fragment leads to."""

    def error(self, path: Path, language: str, reference: LessonReference) -> str | None:
        """What is wrong with a reference in the file ``path``; None if nothing is."""
        target = reference.target
        if target.kind == "outside":
            return None
        if target.kind == "asset":
            return _picture_error(path.parent, target.name, language, reference.steps)
        there = target.course or path.parent.parent.name
        slug = target.name or path.parent.name
        if slug not in self.listed.get(there, ()):
            known = suggestion(slug, self.listed[there]) if there in self.listed else suggestion(there, self.listed)
            return f"there is no lesson '{there}/{slug}'; {known}"
        if not target.fragment:
            return None
        translated = lesson_path(self.root, there, slug, language)
        english = lesson_path(self.root, there, slug, DEFAULT_LANGUAGE)
        other = translated if translated in self.documents else english
        if other not in self.documents:
            return None
        ids = self._ids(other)
        if target.fragment in ids:
            return None
        return f"'{slug}' has no heading #{target.fragment[:60]}; {suggestion(target.fragment, sorted(ids))}"

    def _ids(self, path: Path) -> frozenset[str]:
        if path not in self.ids:
            document = self.documents[path]
            self.ids[path] = frozenset((*document.survey.ids, *(f"cell-{cell.name}" for cell in document.cells)))
        return self.ids[path]


def suggestion(wrong: str, known: Collection[str]) -> str:
    """What to write instead of a name: one of a few, or one that looks like it."""
    if len(known) <= _MOST_NAMES:
        return f"use one of {', '.join(known) or 'none'}"
    meant = get_close_matches(wrong, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(meant)}?" if meant else f"there are {len(known)}, and none has a similar name"


def _picture_error(folder: Path, name: str, language: str, told: int | None) -> str | None:
    """What is wrong with a picture or another asset. ``told`` is how many steps the lesson describes."""
    file = folder / name
    if not file.is_file():
        return f"there is no file {name}; add it, or correct the name"
    try:
        drawing = inline_svg_file(file, "")
        english = file.with_name(file.name.replace(f".{language}.svg", ".svg"))
        original = inline_svg_file(english, "") if drawing is not None and english != file else None
    except InvalidSvg as e:
        return f"the drawing {name} cannot be part of the page: {e}"
    if drawing is None or told is None:
        return None
    if original is not None and original.steps != drawing.steps:
        return f"the drawing {name} has {drawing.steps} steps and {english.name} has {original.steps}; draw the same"
    if drawing.steps and told != drawing.steps:
        return (
            f"the drawing {name} has {drawing.steps} steps, and the lesson has a text for {told}; show it by "
            "{figure}, and end the caption with a numbered list, one item for each step"
        )
    return None
