"""Sections that learners may skip: those whose heading follows a line ``+++ {"tags": ["optional"]}``.

The line is MyST's way to tag what begins below it, and Jupyter shows the tag. A section ends at the next heading of its
level, or of a higher one. What is in it does not count for completing the lesson, nor for its minutes. A whole lesson
cannot be optional, so a line above its title tags nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from app.lessons.directives import LessonError, lesson_warning

_TAG = "optional"
_BETWEEN = ("myst_line_comment", "myst_target", "dropped")
"""What may stand between the line and the heading."""


def mark_optional_sections(tokens: Sequence[Token]) -> list[LessonError]:
    """Mark the tokens of optional sections, for ``is_optional``. Returns what is wrong with the lines that tag them."""
    faults: list[LessonError] = []
    level = depth = 0
    tagged: Token | None = None
    for token in tokens:
        if not depth and token.type == "heading_open":
            written = int(token.tag[1])
            if level and written <= level:
                level = 0
            if written == 1:
                faults += _unused(tagged)
            elif tagged is not None and not level:
                level = written
                token.meta["begins_optional"] = True
            tagged = None
        elif token.type == "myst_block_break" and _is_tagged(token.content):
            faults += _unused(tagged)
            tagged = token
            if depth:  # in a list, a quotation or a box, no section begins
                faults += _unused(tagged)
                tagged = None
        elif not depth and token.type not in _BETWEEN:
            faults += _unused(tagged)
            tagged = None
        if level:
            token.meta["optional"] = True
        depth += token.nesting
    return faults + list(_unused(tagged))


def is_optional(token: Token) -> bool:
    """Whether the token is in an optional section."""
    return bool(token.meta.get("optional"))


def begins_optional(heading: Token) -> bool:
    """Whether an optional section begins with this heading."""
    return bool(heading.meta.get("begins_optional"))


def optional_levels(tokens: Sequence[Token]) -> list[str]:
    """The levels of the headings with which optional sections begin: ``h2``, ``h3``, …"""
    return [token.tag for token in tokens if begins_optional(token)]


def _unused(tagged: Token | None) -> Iterator[LessonError]:
    if tagged is not None and tagged.map is not None:
        text = "no heading follows this line, so nothing becomes optional; write it above the heading of a section"
        yield lesson_warning(tagged.map[0] + 1, text)


def _is_tagged(metadata: str) -> bool:
    try:
        read = json.loads(metadata)
    except (ValueError, RecursionError):  # the latter for a thousand nested lists
        return False
    tags = read.get("tags") if isinstance(read, dict) else None
    return isinstance(tags, list) and _TAG in tags
