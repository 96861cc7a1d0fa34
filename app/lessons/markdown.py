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
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_block, amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_blocks.index import line_comment
from mdit_py_plugins.myst_role import myst_role_plugin

from app.lessons.directive_tokens import DirectiveExpander, top_level_cells
from app.lessons.directives import LessonError, lesson_warning
from app.lessons.limited_table import MAX_LESSON_CELLS, lesson_table

_MAX_MATCHING_STEPS = 20_000_000
_MAX_SEARCHED_LINES = 1_000_000
"""How many lines are searched for the ends of LaTeX environments that have none."""
_ENDED_BLOCKS = ["paragraph", "reference", "blockquote", "list", "footnote_def"]
"""Blocks that end where an environment of LaTeX or a comment begins, as in the plugins."""


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
    if env.get("searched_lines", 0) > _MAX_SEARCHED_LINES:
        text = "too many LaTeX environments have no end, so all below them are shown as text; write the ends"
        env["faults"].append(lesson_warning(1, text))
    if env.get("steps", 0) > _MAX_MATCHING_STEPS:
        text = "too many brackets, braces or tags are in one paragraph, so the last ones are shown as text; divide it"
        env["faults"].append(lesson_warning(1, text))
    if env.get("table_cells", 0) > MAX_LESSON_CELLS:
        text = f"the tables have more than {MAX_LESSON_CELLS:,} cells, so the last ones are not shown; split the lesson"
        env["faults"].append(lesson_warning(1, text))
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
    parser.block.ruler.at("amsmath", _latex_environment, {"alt": _ENDED_BLOCKS})
    parser.block.ruler.at("myst_line_comment", _line_comment, {"alt": _ENDED_BLOCKS})
    parser.block.ruler.at("table", lesson_table, {"alt": ["paragraph", "reference"]})
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _latex_environment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The plugin's rule, which searches for the end of an environment in all lines below each beginning."""
    if not state.src.startswith("\\begin{", state.bMarks[start] + state.tShift[start]):
        return False
    searched: int = state.env.get("searched_lines", 0)
    found = searched <= _MAX_SEARCHED_LINES and amsmath_block(state, start, end, silent)
    if not found:
        state.env["searched_lines"] = searched + end - start
    return found


def _line_comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The plugin's rule, which reads the first character of the line below a comment even if the text ends there.

    In a quotation, a line may be there and yet be empty: ``> % comment`` above a last ``>``.
    """
    if not state.src.endswith("\n"):
        state.src += "\n"
    return line_comment(state, start, end, silent)


def _set_hard_paragraphs_apart(state: StateCore) -> None:
    """Let paragraphs stay text whose marks would take minutes to match."""
    for token in state.tokens:
        if token.type == "inline":
            state.env["steps"] = state.env.get("steps", 0) + _matching_steps(token.content)
            if state.env["steps"] > _MAX_MATCHING_STEPS:
                token.type = "text"


def _matching_steps(text: str) -> int:
    """How long the parser takes to match the marks in a text, at most, in steps of a quarter of a microsecond.

    It looks for the end of each bracket in all that follows, and copies what follows for each brace, tag and entity.
    """
    copies = sum(map(text.count, "{<&"))
    return text.count("[") ** 2 + copies * len(text) // 2_000


def _expand_directives(state: StateCore) -> None:
    cells = top_level_cells(state.tokens)
    expander = DirectiveExpander(state.env, BODY_PARSER, cells, lines=state.env["lines"], faults=state.env["faults"])
    state.tokens = list(expander.expand(state.tokens))


BODY_PARSER = _make_parser()
"""Parses the body of a directive."""
LESSON_PARSER = _make_parser().use(front_matter_plugin)
"""Parses a whole lesson."""
LESSON_PARSER.core.ruler.after("block", "directives", _expand_directives)
LESSON_PARSER.core.ruler.before("inline", "hard_paragraphs", _set_hard_paragraphs_apart)
