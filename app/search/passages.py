"""Divides lessons into passages, what a search finds: a lesson's summary, the text below a heading, or a cell. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from app.lessons.model import Cell, Lesson, Prose

_HEADINGS = ("h2", "h3", "h4", "h5", "h6")
_BLOCKS = frozenset((*_HEADINGS, "p", "li", "td", "th", "dt", "dd", "pre", "figcaption", "div", "br", "tr", "summary"))
_SKIPPED = frozenset(("svg", "script", "style", "math"))


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a lesson. ``anchor`` is its ID on the page; empty for the top."""

    lesson: Lesson
    anchor: str
    title: str
    text: str
    code: str = ""


def lesson_passages(lesson: Lesson) -> Iterator[Passage]:
    """Yield the passages of a lesson in order; only what its page shows, so neither solutions nor answers."""
    anchor, title, texts = "", lesson.title, [lesson.summary]
    for block in lesson.blocks:
        if isinstance(block, Cell):
            task = _sections(block.exercise.task)[0].text if block.exercise else ""
            yield Passage(lesson, f"cell-{block.name}", block.title, task, block.code)
            continue
        html = block.html if isinstance(block, Prose) else block.question + " " + block.prose
        first, *rest = _sections(html)
        texts.append(first.text)
        for section in rest:
            yield Passage(lesson, anchor, title, " ".join(texts))
            anchor, title, texts = section.anchor, section.title, [section.text]
    yield Passage(lesson, anchor, title, " ".join(texts))


class _Section:
    """A heading and the text below it."""

    def __init__(self, anchor: str = "") -> None:
        self.anchor = anchor
        self.title = ""
        self.text = ""


class _SectionParser(HTMLParser):
    """Collects the text of HTML that this application has rendered, by heading."""

    def __init__(self) -> None:
        super().__init__()
        self.sections = [_Section()]
        self._in_heading = False
        self._skipped_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED or self._skipped_depth:
            self._skipped_depth += tag in _SKIPPED
        elif tag in _HEADINGS:
            self.sections.append(_Section(dict(attrs).get("id") or ""))
            self._in_heading = True
        elif tag in _BLOCKS:
            self._add(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped_depth -= 1
        elif tag in _HEADINGS:
            self._in_heading = False
        elif tag in _BLOCKS:
            self._add(" ")

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, text: str) -> None:
        section = self.sections[-1]
        if self._skipped_depth:
            return
        if self._in_heading:
            section.title += text
        else:
            section.text += text


def _sections(html: str) -> list[_Section]:
    parser = _SectionParser()
    parser.feed(str(html))  # Markup would escape the text that is added to it
    parser.close()
    for section in parser.sections:
        section.title = " ".join(section.title.split())
        section.text = " ".join(section.text.split())
    return parser.sections
