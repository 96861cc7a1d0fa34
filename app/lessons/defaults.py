"""What a lesson's front matter leaves out, made from its text: title, summary, and minutes. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from markdown_it.token import Token

from app.lessons.front_matter import MAX_MINUTES, FrontMatter
from app.lessons.plain_text import plain_text

MAX_SUMMARY_LENGTH = 200
_WORDS_PER_MINUTE = 200
_MINUTES_PER_CELL = 1
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?。!?](?=\s|$)|[。!?]")


def with_defaults(header: FrontMatter, tokens: Sequence[Token], title: str | None) -> FrontMatter:
    """The front matter with what it leaves out. ``title`` is that of the text, if it has one.

    Without any title, the first heading is the title; None if there is none, either.
    """
    return replace(
        header,
        title=header.title or title or _first_text(tokens, "heading_open") or None,
        summary=header.summary or _summary(tokens),
        minutes=header.minutes or estimate_minutes(tokens),
    )


def estimate_minutes(tokens: Sequence[Token]) -> int:
    """A minute for 200 words (or 400 characters of Korean or Chinese) and a minute for each cell."""
    words = 0.0
    cells = sum(token.type == "cell" for token in tokens)
    for token in tokens:
        if token.type == "inline":
            text = plain_text(token)
            characters = len(_CJK.findall(text))
            words += characters / 2 + len(_CJK.sub(" ", text).split())
    return min(max(math.ceil(words / _WORDS_PER_MINUTE + cells * _MINUTES_PER_CELL), 1), MAX_MINUTES)


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
