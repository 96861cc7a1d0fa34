"""Converts the Markdown and LaTeX of a display to HTML that may become part of a page.

The text comes from a learner's code: raw HTML stays text, the result is sanitized with a list of allowed elements, and
lengths are limited. Formulas become MathML, as in lessons; one that cannot be converted is shown as it was written.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from app.lessons.formulas import InvalidFormula, latex_to_mathml, scrolling_formula
from app.web.user_text import escape_bidi_controls

MOST_TEXT = 20_000
"""Characters of Markdown, which take a second or two at most. A longer text is shown as it was written."""
MOST_HTML = 1 << 20
"""Characters of the result, which can be longer than its source: rows of a table are filled in."""
_MOST_FORMULA = 2_000
"""Characters. The converter calls itself for each brace: a few thousand of them would end the process."""
_MOST_FORMULAS = 200
_DELIMITED = re.compile(r"\s*\${1,2}(?P<formula>[^$]+)\${1,2}\s*")
_ENVIRONMENT = re.compile(r"\s*\\begin\{(?P<name>[a-z]+)\*?\}(?P<body>.*)\\end\{(?P=name)\*?\}\s*", re.DOTALL)
_WITHIN = {"align": "aligned", "eqnarray": "aligned", "gather": "gathered", "multline": "gathered"}
"""Environments of documents, and those that do the same within a formula."""
_DEFINITION = re.compile(r"\\(def|newcommand|renewcommand|providecommand|let)\b")
"""A few definitions that use each other could become billions of characters."""
_SLOT = "\ue000{} {}\ue001"
"""A place in the HTML for a formula: a word that no text can know, and the formula's number."""
_SLOT_PARTS = re.compile("\ue000([0-9a-f]{16}) ([0-9]{1,3})\ue001")
_CLEANER = nh3.Cleaner(
    tags={
        *("a", "blockquote", "br", "code", "del", "em", "hr", "li", "ol", "p", "pre", "s", "strong", "ul"),
        *("div", "table", "thead", "tbody", "tr", "th", "td"),
    },
    clean_content_tags={"script", "style"},
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    tag_attribute_values={
        "pre": {"tabindex": {"0"}},
        "div": {"tabindex": {"0"}, "role": {"group"}},
        "th": {"scope": {"col"}},
    },
    allowed_classes={"div": {"table-scroll"}, "p": {"heading"}},
    set_tag_attribute_values={"a": {"target": "_blank"}},
    url_relative="deny",
    url_schemes={"http", "https", "mailto"},
    link_rel="nofollow ugc noopener",
    strip_comments=True,
)


def markdown_to_html(source: str) -> str:
    """The HTML of Markdown with ``$formulas$``; never raises, whatever the text."""
    if len(source) > MOST_TEXT:
        return _as_written(source)
    formulas: list[str] = []
    word = secrets.token_hex(8)
    text = escape_bidi_controls(source)
    html = _CLEANER.clean(_PARSER.render(text, {"formulas": formulas, "word": word})).strip()
    html = _SLOT_PARTS.sub(lambda slot: formulas[int(slot[2])] if slot[1] == word else slot[0], html)
    return html if len(html) <= MOST_HTML else _as_written(source)


def latex_to_html(source: str) -> str:
    """The HTML of what IPython calls LaTeX: one formula with or without dollar signs, or text with formulas."""
    if found := _ENVIRONMENT.fullmatch(source):
        name, body = found["name"], found["body"]
        inner = _WITHIN.get(name, name)
        return _formula(body if name == "equation" else rf"\begin{{{inner}}}{body}\end{{{inner}}}", block=True)
    if found := _DELIMITED.fullmatch(source):
        return _formula(found["formula"], block=True)
    return markdown_to_html(source) if "$" in source else _formula(source, block=True)


def _formula(latex: str, *, block: bool) -> str:
    latex = escape_bidi_controls(latex).strip().removeprefix(r"\displaystyle").strip()
    written = escapeHtml(latex)
    if len(latex) > _MOST_FORMULA or _DEFINITION.search(latex):
        return f"<code>{written}</code>"
    try:
        element = latex_to_mathml(latex, block=block)
    except InvalidFormula:
        return f"<code>{written}</code>"
    return f'<div class="math" tabindex="0" role="group">{element}</div>' if block else scrolling_formula(element)


def _as_written(source: str) -> str:
    return f'<pre tabindex="0">{escapeHtml(source)}</pre>'


def _slot(self: Any, tokens: Sequence[Token], idx: int, _options: Any, env: dict[str, Any]) -> str:
    """Where a formula will be, so that its MathML is not sanitized as if it were a learner's."""
    formulas: list[str] = env["formulas"]
    if len(formulas) >= _MOST_FORMULAS:
        return f"<code>{escapeHtml(tokens[idx].content)}</code>"
    formulas.append(_formula(tokens[idx].content, block=tokens[idx].type == "math_block"))
    return _SLOT.format(env["word"], len(formulas) - 1)


def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "typographer": False, "maxNesting": 20})
    parser.enable(["table", "strikethrough"])
    parser.disable("image")  # nothing is loaded from other sites
    parser.use(dollarmath_plugin, allow_labels=False, double_inline=True)
    for name in ("math_inline", "math_inline_double", "math_block"):
        parser.add_render_rule(name, _slot)
    parser.add_render_rule("heading_open", lambda *_: '<p class="heading">')  # a page has an outline of its own
    parser.add_render_rule("heading_close", lambda *_: "</p>\n")
    parser.add_render_rule("table_open", lambda *_: '<div class="table-scroll" role="group" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


_PARSER = _build_parser()
