"""Converts the Markdown of comments to safe HTML: without raw HTML, and sanitized with a list of allowed elements.

Headings and images are not supported: a comment has no outline of its own and loads nothing from other sites. Code is
highlighted as in lessons, in the languages that lessons use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments.token import STANDARD_TYPES

from app.comments.autolink import autolink_rule
from app.lessons.highlight import highlight_code
from app.lessons.limited_table import limited_table
from app.web.user_text import escape_bidi_controls

RENDERER_VERSION = 4
"""Stored with the HTML: increase it when the HTML of a source changes."""

MAX_MENTIONS = 10
"""People that one comment can mention."""
MAX_HTML_BYTES = 80 * 1024
"""Per comment. Markup makes a text longer: ``1+1+1`` with highlighting is 24 times as long. The longest possible
comment, shown as plain text, is smaller."""
_MAX_HIGHLIGHTED_LINE = 1_000
"""Characters in a line of code that is highlighted: in some languages the time grows with the square."""
_HIGHLIGHTED_LANGUAGES = frozenset(
    {"python", "py", "pycon", "python3", "bash", "sh", "console", "json", "yaml", "toml", "diff", "text"}
)
"""Other languages are not highlighted: their lexers were not written for untrusted input."""
_MENTION = re.compile(r"(?<![\w@/.-])@([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?)(?![\w@-])")
_LOCAL_URL = re.compile(r"/(?![/\\])")
"""URLs on this site; other URLs without a scheme are ambiguous."""
_TABLE_TAGS = {"table", "thead", "tbody", "tr", "th", "td"}
_TAGS = {
    "a",
    "blockquote",
    "br",
    "code",
    "div",
    "em",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "ul",
    *_TABLE_TAGS,
}
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags={"script", "style"},
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    tag_attribute_values={
        "pre": {"tabindex": {"0"}},
        "div": {"tabindex": {"0"}, "role": {"group"}},
        "th": {"scope": {"col"}},
    },
    allowed_classes={
        "a": {"mention"},
        "div": {"table-scroll"},
        "pre": {"listing"},
        "span": set(filter(None, STANDARD_TYPES.values())),
    },
    url_relative=lambda address: address if _LOCAL_URL.match(address) else None,
    url_schemes={"http", "https", "mailto"},
    link_rel="nofollow ugc noopener",
    strip_comments=True,
)


def mentioned_handles(source: str) -> list[str]:
    """The handles that a comment mentions, in lowercase, without duplicates; code and links mention nobody."""
    texts = (token.content for token in _text_tokens(_PARSER.parse(escape_bidi_controls(source))))
    found = dict.fromkeys(match[1].lower() for text in texts for match in _MENTION.finditer(text))
    return list(found)[:MAX_MENTIONS]


def to_html(source: str, known: Collection[str] = ()) -> str:
    """Render the comment as HTML. Mentions of the ``known`` handles become links.

    If the HTML is larger than ``MAX_HTML_BYTES``, code is not highlighted; if it still is, the comment is plain text.
    """
    shown = escape_bidi_controls(source)
    for colored in (True, False):
        env = {"known": frozenset(known), "colored": colored}
        html = _CLEANER.clean(_PARSER.render(shown, env)).strip()
        if len(html.encode()) <= MAX_HTML_BYTES:
            return html
    return _code_block_html(escapeHtml(shown))


def to_plain_text(source: str) -> str:
    """The words and code of a comment without markup, with spaces between paragraphs."""
    said: list[str] = []
    for token in _PARSER.parse(escape_bidi_controls(source)):
        words = (" " if child.type.endswith("break") else child.content for child in token.children or ())
        said += (*words, " ") if token.children else (token.content, " ")
    return "".join(said).strip()


def _text_tokens(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens of plain text outside links."""
    for token in tokens:
        depth = 0
        for child in token.children or ():
            depth += {"link_open": 1, "link_close": -1}.get(child.type, 0)
            if child.type == "text" and not depth:
                yield child


class _CommentRenderer(RendererHTML):
    """The differences from CommonMark's renderer."""

    def render(self, tokens: Sequence[Token], options: OptionsDict, env: EnvType) -> str:
        for token in _text_tokens(tokens):
            token.meta["calls"] = True
        return super().render(tokens, options, env)

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        escaped = escapeHtml(tokens[idx].content)
        if not tokens[idx].meta.get("calls"):
            return escaped
        return _MENTION.sub(lambda match: _mention_link(match[0], match[1].lower(), env), escaped)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = tokens[idx].info.lower().split()
        source = tokens[idx].content.removesuffix("\n")
        known = env["colored"] and bool(words) and words[0] in _HIGHLIGHTED_LANGUAGES
        short = max(map(len, source.split("\n"))) <= _MAX_HIGHLIGHTED_LINE
        return f"{_code_block_html(highlight_code(source, words[0] if known and short else 'text'))}\n"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        code = escapeHtml(tokens[idx].content.removesuffix("\n"))
        return f"{_code_block_html(code)}\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-scroll" role="group" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<th scope="col">'


def _code_block_html(code: str) -> str:
    return f'<pre class="listing" tabindex="0"><code>{code}</code></pre>'


def _mention_link(shown: str, handle: str, env: EnvType) -> str:
    return f'<a class="mention" href="/learners/{handle}/comments">{shown}</a>' if handle in env["known"] else shown


def _build_parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "typographer": False, "maxNesting": 12}
    parser = MarkdownIt("commonmark", options, renderer_cls=_CommentRenderer)
    parser.block.ruler.at("table", limited_table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.after("text", "bare_link", autolink_rule)
    parser.enable(["table", "strikethrough"])
    parser.disable(["image", "heading", "lheading", "html_block", "html_inline", "reference"])
    return parser


_PARSER = _build_parser()
