"""Renders Markdown that a learner wrote or opened from a file: as in lessons, without what only authors may do.

Directives, pictures and references to files are not supported, because they read the lesson's folder. Raw HTML loses
its tags, and the result is sanitized with a list of allowed elements.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache, partial
from typing import ParamSpec, TypeVar

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments.token import STANDARD_TYPES

from app.lessons.highlight import highlight_code
from app.lessons.limited_table import limited_table
from app.lessons.links import InvalidLink, parse_link
from app.lessons.render import LessonRenderer
from app.web.user_text import escape_bidi_controls

MAX_LENGTH = 10_000
"""In characters. Parsing takes longer for a longer text, in bad cases with its square: the source is shown instead."""
_MAX_OPENINGS = 600
"""Per text, of brackets and of HTML comments. Each may cost a search up to the end of the text."""
MAX_PAGE_LENGTH = 100_000
"""In characters, of all texts of a page. They take up to three seconds, and a page may have five times as much."""
MAX_HTML_BYTES = 100_000
"""Per text. Markup makes a text longer: if it is more than this, the source is shown."""
_HIGHLIGHTED_LANGUAGES = frozenset(
    {"python", "py", "pycon", "python3", "bash", "sh", "console", "json", "yaml", "toml"}
)
"""Other languages are not highlighted: their lexers were not written for untrusted input."""
_LOWEST_HEADING = 6
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TABLE_TAGS = {"table", "thead", "tbody", "tr", "th", "td"}
_HEADINGS = {f"h{level}" for level in range(2, _LOWEST_HEADING + 1)}
MATH_TAGS = {
    "math",
    "menclose",
    "mfrac",
    "mi",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mroot",
    "mrow",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
}
MATH_ATTRIBUTES = {
    "accent",
    "columnalign",
    "columnspacing",
    "depth",
    "display",
    "displaystyle",
    "fence",
    "form",
    "height",
    "linethickness",
    "lspace",
    "mathvariant",
    "maxsize",
    "minsize",
    "notation",
    "rowspacing",
    "rspace",
    "scriptlevel",
    "separator",
    "stretchy",
    "symmetric",
    "voffset",
    "width",
}
_CLEANER = nh3.Cleaner(
    tags={"a", "blockquote", "br", "code", "div", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong", "ul"}
    | _TABLE_TAGS
    | _HEADINGS
    | MATH_TAGS,
    clean_content_tags={"script", "style"},
    attributes={"a": {"href", "title"}, "ol": {"start"}, "div": {"aria-label"}}
    | dict.fromkeys(MATH_TAGS, MATH_ATTRIBUTES),
    tag_attribute_values={
        "pre": {"tabindex": {"0"}},
        "div": {"tabindex": {"0"}, "role": {"group"}},
        "span": {"tabindex": {"0"}, "role": {"group"}},
        "th": {"scope": {"col"}},
    },
    allowed_classes={
        "div": {"table-scroll", "math"},
        "pre": {"listing"},
        "td": {"center", "right"},
        "th": {"center", "right"},
        "span": {"math", *filter(None, STANDARD_TYPES.values())},
    },
    url_schemes={"http", "https", "mailto"},
    link_rel="nofollow ugc noopener noreferrer",
)


_P = ParamSpec("_P")
_T = TypeVar("_T")
_RENDER_THREAD = ThreadPoolExecutor(1, thread_name_prefix="learners-text")


class _UntrustedRenderer(LessonRenderer):
    """Shows what a lesson's author may write and a learner may not as plain text."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        try:
            outside = parse_link(address).kind == "outside"
        except InvalidLink:
            outside = False
        return f'<a href="{escapeHtml(address)}">' if outside else "<a>"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return escapeHtml(tokens[idx].content)

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<{_lower(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{_lower(tokens[idx].tag)}>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = tokens[idx].info.lower().split()
        language = words[0] if words and words[0] in _HIGHLIGHTED_LANGUAGES else "text"
        return _listing(highlight_code(tokens[idx].content.removesuffix("\n"), language))

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return ""

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = " ".join(nh3.clean(_HTML_COMMENT.sub("", tokens[idx].content), tags=set()).split())
        return f"<p>{words}</p>\n" if words else ""


@lru_cache(maxsize=512)
def render_untrusted_markdown(source: str) -> Markup:
    """The text as safe HTML; its headings are one level lower, because the page has the first."""
    shown = escape_bidi_controls(source)
    html = ""
    is_parsed = len(shown) <= MAX_LENGTH and shown.count("[") + shown.count("<!") <= _MAX_OPENINGS
    if is_parsed:
        html = str(_UntrustedRenderer(_PARSER).render(_PARSER.parse(shown), _PARSER.options, {}))
    if not is_parsed or len(html) > MAX_HTML_BYTES:
        return _as_written(shown)
    return Markup(_CLEANER.clean(html).strip())  # noqa: S704 - sanitized


def render_untrusted_texts(sources: Iterable[str]) -> Iterator[Markup]:
    """The texts of a page as safe HTML: rendered up to the length that a page may have; the others as written."""
    left = MAX_PAGE_LENGTH
    for source in sources:
        if len(source) <= left:
            left -= len(source)
            yield render_untrusted_markdown(source)
        else:
            yield _as_written(escape_bidi_controls(source))


def _as_written(shown: str) -> Markup:
    return Markup(_listing(escapeHtml(shown)).strip())  # noqa: S704 - escaped


async def run_in_render_thread(function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Call a function that renders much of what learners wrote, in the one thread for that, one call after the other.

    The threads of ``asyncio.to_thread`` also look for pages and check passwords: a few slow texts would hold up all.
    """
    call = partial(copy_context().run, function, *arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_RENDER_THREAD, call)


def _listing(code: str) -> str:
    return f'<pre class="listing" tabindex="0"><code>{code}</code></pre>\n'


def _lower(heading: str) -> str:
    return f"h{min(int(heading[1:]) + 1, _LOWEST_HEADING)}"


def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "typographer": False, "maxNesting": 20})
    parser.block.ruler.at("table", limited_table, {"alt": ["paragraph", "reference"]})
    parser.enable(["table", "strikethrough"])
    parser.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, allow_blank_lines=False)
    return parser


_PARSER = _build_parser()
