"""What a lesson's front matter leaves out, made from its text: title, summary, and minutes. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from markdown_it.token import Token

from app.lessons.exercise_cells import ExerciseCell, is_exercise
from app.lessons.front_matter import MAX_MINUTES, FrontMatter
from app.lessons.optional_sections import is_optional
from app.lessons.plain_text import plain_text
from app.lessons.render_directives import is_collapsible

MAX_SUMMARY_LENGTH = 200
_WORDS_PER_MINUTE = 200
_MINUTES_PER_CELL = 1
_MINUTES_PER_EXERCISE = 5
_ROUNDED_FROM = 10
"""The minutes from which an estimate is a multiple of 5: it is no more exact than that."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?。!?](?=\s|$)|[。!?]")


def with_defaults(
    header: FrontMatter, tokens: Sequence[Token], cells: Sequence[ExerciseCell], title: str | None
) -> FrontMatter:
    """The front matter with what it leaves out. ``title`` is that of the text, if it has one.

    Without any title, the first heading is the title; None if there is none, either.
    """
    return replace(
        header,
        title=header.title or title or _first_text(tokens, "heading_open") or None,
        summary=header.summary or _summary(tokens),
        minutes=header.minutes or estimate_minutes(tokens, cells),
    )


def estimate_minutes(tokens: Sequence[Token], cells: Sequence[ExerciseCell]) -> int:
    """A minute for 200 words (400 characters of Korean or Chinese), one for each cell, and 5 more for an exercise.

    Optional sections do not count, and neither do boxes that are closed until a click, such as answers to try.
    """
    words = 0.0
    needed_lines = set()
    boxes: list[bool] = []
    for token in tokens:
        if token.type == "admonition_open":
            directive = token.meta["directive"]
            boxes.append(is_collapsible(directive) and "open" not in directive.options)
        elif token.type == "admonition_close":
            boxes.pop()
        elif is_optional(token):
            continue
        elif token.type == "cell":
            needed_lines.add(token.meta["directive"].line)
        elif token.type == "inline" and not any(boxes):
            text = plain_text(token)
            characters = len(_CJK.findall(text))
            words += characters / 2 + len(_CJK.sub(" ", text).split())
    needed = [cell for cell in cells if cell.fence_line in needed_lines]
    exercises = sum(map(is_exercise, needed))
    minutes = words / _WORDS_PER_MINUTE + len(needed) * _MINUTES_PER_CELL + exercises * _MINUTES_PER_EXERCISE
    rounded = math.ceil(minutes) if minutes < _ROUNDED_FROM else 5 * round(minutes / 5)
    return min(max(rounded, 1), MAX_MINUTES)


def _summary(tokens: Sequence[Token]) -> str | None:
    """The first paragraph between other blocks, or as many sentences of it as fit."""
    text = _first_text(tokens, "paragraph_open")
    if len(text) <= MAX_SUMMARY_LENGTH:
        return text or None
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.end() <= MAX_SUMMARY_LENGTH]
    if ends:
        return text[: ends[-1]]
    return text[:MAX_SUMMARY_LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"


def _first_text(tokens: Sequence[Token], kind: str) -> str:
    depth = 0
    for i, token in enumerate(tokens):
        if token.type == kind and not depth and (text := plain_text(tokens[i + 1])):
            return text
        depth += token.nesting
    return ""
