"""Parses the Markdown of lessons into tokens with line numbers.

CommonMark with tables, strikethrough, definition lists, footnotes, ``$math$``, ``(targets)=``, ``% comments`` and
directives. Fences that are directives become separate tokens here, and their bodies are parsed in place:

=====================================  =====================================================
token                                  meaning
=====================================  =====================================================
``cell``                               ``{code-cell}``; only between top-level blocks
``admonition_open`` … ``_close``       ``{note}`` and similar, ``{admonition}``, ``{dropdown}``
``figure_open`` … ``_close``           ``{figure}`` around its caption
``picture``                            ``{image}``
``captioned_open`` … ``_close``        ``{table}`` around its caption and its table
``math_block``                         ``$$…$$`` and ``{math}``
``task_open`` … ``_close``             ``{exercise}``, ``{solution}``, ``{quiz}`` and ``{predict}``
=====================================  =====================================================

Each of these tokens has its Directive in ``meta["directive"]``. Errors in directives and fences are in
``ParsedMarkdown.faults``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from app.lessons.directives import Directive, LessonError, parse_directive

_CHOICE_MARK = re.compile(r"\[([ xX])\](?:[ \t\n]+|$)")
_MAX_DEPTH = 5
"""How deep directives may be nested."""

_BLOCK_TOKENS = {
    "admonition": "admonition",
    "titled": "admonition",
    "figure": "figure",
    "table": "captioned",
    "task": "task",
}


@dataclass(frozen=True, slots=True)
class ParsedMarkdown:
    """The tokens of a source, and the errors in its directives and fences."""

    tokens: list[Token]
    faults: list[LessonError]
    env: MutableMapping[str, Any]


def parse_markdown(source: str) -> ParsedMarkdown:
    """Parse a lesson's source. Never raises, whatever the text."""
    env: dict[str, Any] = {"faults": [], "lines": source.replace("\r\n", "\n").replace("\r", "\n").split("\n")}
    tokens = LESSON_PARSER.parse(source, env)
    return ParsedMarkdown(tokens, env["faults"], env)


def _make_parser() -> MarkdownIt:
    """Raw HTML and invalid links are parsed only to be reported; they never reach the page."""
    parser = (
        MarkdownIt("commonmark", {"html": True, "typographer": False})
        .enable(["table", "strikethrough"])
        .use(colon_fence_plugin)
        .use(deflist_plugin)
        .use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, allow_blank_lines=False)
        .use(footnote_plugin, inline=False)
        .use(myst_block_plugin)
        .use(myst_role_plugin)
    )
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _expand_directives(state: StateCore) -> None:
    state.tokens = list(_expand(state.tokens, state.env, 0))


def _expand(tokens: list[Token], env: MutableMapping[str, Any], depth: int) -> Iterator[Token]:
    """Replace the fences of directives with the directives' tokens."""
    nesting = 0
    for token in tokens:
        nesting += token.nesting
        if token.type not in ("fence", "colon_fence") or token.map is None:
            yield token
            continue
        directive = parse_directive(token.info, token.content, token.map[0] + 1, token.map[1], token.markup)
        env["faults"] += _fence_errors(token, directive, env["lines"], nested=bool(nesting or depth))
        if directive is not None:
            env["faults"] += directive.faults
            yield from _directive_tokens(directive, token, env, depth)
        elif token.type == "fence":
            yield token


def _fence_errors(
    token: Token, directive: Directive | None, lines: list[str], *, nested: bool
) -> Iterator[LessonError]:
    first, end = token.map or [0, 0]
    mark = token.markup
    closing = lines[end - 1].strip().lstrip("> ") if first < end - 1 <= len(lines) - 1 else ""
    if len(closing) < len(mark) or set(closing) != {mark[0]}:
        hint = f"put {mark} at its end, and {mark}{mark[0]} around a block that contains {mark} itself"
        yield LessonError(first + 1, f"the {mark} opened here is never closed; {hint}")
    if directive is None:
        if token.type == "colon_fence":
            yield LessonError(
                first + 1, f"{mark}{token.info} is not a directive; write its name in braces, as in {mark}{{note}}"
            )
    elif directive.spec is not None and directive.spec.kind == "task" and nested:
        text = f"{{{directive.name}}} cannot be inside another block; move it to the left margin"
        yield LessonError(first + 1, text)
    elif directive.name == "code-cell":
        if nested:
            yield LessonError(first + 1, "a code cell cannot be inside another block; move it to the left margin")
        elif token.type == "colon_fence":
            yield LessonError(first + 1, "a code cell needs ``` and not :::, or Jupyter would not see it")


def _directive_tokens(directive: Directive, fence: Token, env: MutableMapping[str, Any], depth: int) -> Iterator[Token]:
    spec = directive.spec
    kind = spec.kind if spec else ""
    if kind == "math":
        yield _make_token("math_block", fence, directive, content=directive.body)
    elif kind in ("cell", "image"):
        yield _make_token("cell" if kind == "cell" else "picture", fence, directive)
    elif kind in _BLOCK_TOKENS:
        if depth >= _MAX_DEPTH:
            env["faults"].append(LessonError(directive.line, "directives are nested too deeply; move this one out"))
            return
        yield _make_token(f"{_BLOCK_TOKENS[kind]}_open", fence, directive, nesting=1)
        if kind == "admonition" and directive.argument:
            yield from _parse_body(directive.argument, directive.line, env, depth)
        if kind in ("titled", "table", "task") and directive.argument:
            yield from _caption(directive)
        body = _parse_body(directive.body, directive.body_line, env, depth)
        yield from _mark_choices(body) if directive.name in ("quiz", "predict") else body
        yield _make_token(f"{_BLOCK_TOKENS[kind]}_close", fence, directive, nesting=-1)


def _caption(directive: Directive) -> Iterator[Token]:
    yield Token("caption_open", "", 1, meta={"directive": directive})
    at = [directive.line - 1, directive.line]
    yield Token("inline", "", 0, content=directive.argument, children=[], map=at, block=True)
    yield Token("caption_close", "", -1, meta={"directive": directive})


def _mark_choices(tokens: Iterable[Token]) -> Iterator[Token]:
    """Remove ``[x]`` and ``[ ]`` from the items of task lists, and store them in the items' ``meta["correct"]``."""
    item: Token | None = None
    for token in tokens:
        if token.type == "inline" and item is not None:
            mark = _CHOICE_MARK.match(token.content)
            if mark is not None:
                item.meta["correct"] = mark[1] != " "
                token.content = token.content[mark.end() :]
        if token.type != "paragraph_open":
            item = token if token.type == "list_item_open" else None
        yield token


def _parse_body(text: str, line: int, env: MutableMapping[str, Any], depth: int) -> Iterator[Token]:
    """Parse a directive's body, which starts on ``line`` (from 1) of the source."""
    tokens: list[Token] = []
    BODY_PARSER.block.parse(text, BODY_PARSER, env, tokens)
    for token in tokens:
        if token.map is not None:
            token.map = [token.map[0] + line - 1, token.map[1] + line - 1]
    yield from _expand(tokens, env, depth + 1)


def _make_token(kind: str, fence: Token, directive: Directive, *, nesting: Any = 0, content: str = "") -> Token:
    meta = {"directive": directive}
    return Token(kind, "", nesting, map=fence.map, content=content, meta=meta, block=True, level=fence.level)


BODY_PARSER = _make_parser()
"""Parses the body of a directive."""
LESSON_PARSER = _make_parser().use(front_matter_plugin)
"""Parses a whole lesson."""
LESSON_PARSER.core.ruler.after("block", "directives", _expand_directives)
