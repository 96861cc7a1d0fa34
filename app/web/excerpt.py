"""Words of a search: reading them from a query, and showing where a text contains them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

MAX_QUERY_LENGTH = 100
_MAX_WORDS = 8
_BEFORE, _LENGTH, _LAST_WORD = 60, 200, 30
"""Characters before the first match, of the whole excerpt, and of its last word."""


def query_words(query: str) -> list[str]:
    """The distinct words of a query in lower case, without characters that a database may refuse."""
    printable = "".join(c if c.isprintable() else " " for c in query[:MAX_QUERY_LENGTH])
    return list(dict.fromkeys(printable.lower().split()))[:_MAX_WORDS]


def excerpt(text: str, words: Sequence[str]) -> Markup:
    """The part of a text around the first match, on one line, with every match in ``<mark>``.

    If nothing matches, it is the beginning of the text.
    """
    line = " ".join(text.split())
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))) or "(?!)", re.IGNORECASE)
    match = pattern.search(line)
    start = max(0, match.start() - _BEFORE) if match else 0
    if start:  # begin with a word, unless the text has no spaces there
        start = line.find(" ", start, match.start() if match else None) + 1 or start
    end = start + _LENGTH
    if end < len(line):
        end = line.rfind(" ", end - _LAST_WORD, end) if " " in line[end - _LAST_WORD : end] else end
    shown = line[start:end]
    parts, done = [escape("… " if start else "")], 0
    for found in pattern.finditer(shown):
        parts += [escape(shown[done : found.start()]), Markup("<mark>{}</mark>").format(found.group())]
        done = found.end()
    parts += [escape(shown[done:]), escape(" …" if end < len(line) else "")]
    return Markup("").join(parts)
