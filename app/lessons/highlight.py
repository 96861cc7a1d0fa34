"""Syntax highlighting with Pygments, using its short class names, never inline styles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from markupsafe import Markup
from pygments import highlight as _highlight
from pygments.filter import Filter
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Name, Punctuation, _TokenType
from pygments.util import ClassNotFound

MOST_OF_LEARNERS = 100_000
"""Characters. They take half a second, and up to 25 times their size in memory."""
_FORMATTER = HtmlFormatter(nowrap=True)


def can_highlight(language: str) -> bool:
    return _find_lexer(language) is not None


def highlight_code(code: str, language: str) -> Markup:
    """The code as HTML for a ``<code>`` element; only escaped if the language is unknown."""
    lexer = _find_lexer(language)
    if lexer is None:
        return Markup.escape(code)
    return Markup(_highlight(code, lexer, _FORMATTER).removesuffix("\n"))  # noqa: S704 - Pygments escapes


def highlight_learners_code(codes: Iterable[str]) -> Iterator[Markup]:
    """The code of a page's cells as HTML, as much of it highlighted as a page may have; the rest is only escaped."""
    left = MOST_OF_LEARNERS
    for code in codes:
        if len(code) <= left:
            left -= len(code)
            yield highlight_code(code, "python")
        else:
            yield Markup.escape(code)


class _FunctionCallFilter(Filter):
    """Marks a name before a parenthesis as a function, like the editor in the browser."""

    def filter(self, lexer: Lexer | None, stream: Iterable[tuple[_TokenType, str]]) -> Iterator[tuple[_TokenType, str]]:
        held: tuple[_TokenType, str] | None = None
        for kind, text in stream:
            if held is not None:
                yield (Name.Function, held[1]) if kind is Punctuation and text.startswith("(") else held
            held = (kind, text) if kind is Name else None
            if held is None:
                yield kind, text
        if held is not None:
            yield held


@lru_cache(maxsize=64)
def _find_lexer(language: str) -> Lexer | None:
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=True)
    except ClassNotFound:
        return None
    if language == "python":
        lexer.add_filter(_FunctionCallFilter())
    return lexer
