"""Colours for code: Pygments' spans with its short class names, never inline styles."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup
from pygments import highlight as _highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_FORMATTER = HtmlFormatter(nowrap=True)


def knows(language: str) -> bool:
    """True if code in this language can be coloured."""
    return _lexer(language) is not None


def highlighted(code: str, language: str) -> Markup:
    """The code as HTML to stand inside ``<code>``; escaped and plain if the language is not known."""
    lexer = _lexer(language)
    if lexer is None:
        return Markup.escape(code)
    return Markup(_highlight(code, lexer, _FORMATTER).removesuffix("\n"))  # noqa: S704 - Pygments escapes


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=True)
    except ClassNotFound:
        return None
