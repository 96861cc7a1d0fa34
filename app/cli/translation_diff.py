"""Which paragraphs of an English lesson have changed since it was translated. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

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
    old, new = list(split_paragraphs(before)), list(split_paragraphs(now))
    matcher = difflib.SequenceMatcher(None, [one.text for one in old], [one.text for one in new], autojunk=False)
    end = now.count("\n") + 1
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            line = new[j1].line if j1 < len(new) else end
            yield ChangedParagraphs(tuple(old[i1:i2]), tuple(new[j1:j2]), line)
