"""Parses the Markdown of lessons into tokens with line numbers.

CommonMark with tables, strikethrough, definition lists, footnotes, ``$math$``, LaTeX environments, ``(targets)=``,
``% comments`` and directives, which ``DirectiveExpander`` expands. Errors in directives and fences are in
``ParsedMarkdown.faults``.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from app.lessons.directive_tokens import DirectiveExpander, top_level_cells
from app.lessons.directives import LessonError


@dataclass(frozen=True, slots=True)
class ParsedMarkdown:
    """The tokens of a source, and the errors in its directives and fences."""

    tokens: list[Token]
    faults: list[LessonError]
    env: MutableMapping[str, Any]


def parse_markdown(source: str, folder: Path | None = None) -> ParsedMarkdown:
    """Parse a lesson's source. Never raises, whatever the text. ``folder`` has the files that it includes."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    env: dict[str, Any] = {"faults": [], "lines": lines, "folder": folder}
    tokens = LESSON_PARSER.parse(source, env)
    return ParsedMarkdown(tokens, env["faults"], env)


def _make_parser() -> MarkdownIt:
    """Raw HTML and invalid links are parsed only to be reported; they never reach the page."""
    parser = (
        MarkdownIt("commonmark", {"html": True, "typographer": False})
        .enable(["table", "strikethrough"])
        .use(colon_fence_plugin)
        .use(deflist_plugin)
        .use(dollarmath_plugin, allow_digits=False, allow_blank_lines=False, double_inline=True)
        .use(amsmath_plugin)
        .use(footnote_plugin, inline=False)
        .use(myst_block_plugin)
        .use(myst_role_plugin)
    )
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _expand_directives(state: StateCore) -> None:
    cells = top_level_cells(state.tokens)
    expander = DirectiveExpander(state.env, BODY_PARSER, cells, lines=state.env["lines"], faults=state.env["faults"])
    state.tokens = list(expander.expand(state.tokens))


BODY_PARSER = _make_parser()
"""Parses the body of a directive."""
LESSON_PARSER = _make_parser().use(front_matter_plugin)
"""Parses a whole lesson."""
LESSON_PARSER.core.ruler.after("block", "directives", _expand_directives)
