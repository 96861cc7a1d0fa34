"""Raw HTML in lessons: its words and simple formatting are shown, everything else is left out.

What is left out: scripts, styles, classes, pictures, frames, and all attributes but the addresses of links to the web.
"""

from __future__ import annotations

import re

import nh3
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

_FORMATTING = {"b", "i", "em", "strong", "u", "s", "del", "sub", "sup", "kbd", "code", "small", "mark", "br", "a"}
_BLOCKS = {
    "p",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "blockquote",
    "dl",
    "dt",
    "dd",
    "pre",
    "hr",
}
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)(?P<rest>(?:\s[^<>]*)?)/?>", re.DOTALL)
_HREF = re.compile(r"\shref\s*=\s*[\"']?(?P<address>https?://[^\s\"'<>]+)", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
_CLEANER = nh3.Cleaner(
    tags=_FORMATTING | _BLOCKS,
    attributes={"a": {"href"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
    url_schemes={"http", "https"},
    link_rel="noreferrer",
)


def clean_html_block(content: str) -> str:
    """The HTML of a block, reduced to words and simple formatting."""
    cleaned = _CLEANER.clean(_COMMENT.sub("", content)).strip()
    if not cleaned:
        return ""
    return f'<div class="raw-html">{cleaned}</div>\n'


def mark_formatting(children: list[Token]) -> None:
    """Put into ``meta["html"]`` of each tag what the page shows of it; only tags that are closed are shown."""
    opened: list[tuple[str, Token, str]] = []
    for token in children:
        if token.type != "html_inline":
            continue
        token.meta["html"] = ""
        tag = _TAG.fullmatch(token.content)
        name = tag["name"].lower() if tag else ""
        if tag is None or name not in _FORMATTING:
            continue
        if name == "br":
            token.meta["html"] = "<br>"
        elif not tag["close"]:
            opened.append((name, token, _opening(name, tag["rest"])))
        elif opened and opened[-1][0] == name and opened[-1][1].level == token.level:
            _, start, html = opened.pop()
            if html:
                start.meta["html"], token.meta["html"] = html, f"</{name}>"


def _opening(name: str, attributes: str) -> str:
    if name != "a":
        return f"<{name}>"
    address = _HREF.search(attributes)
    return f'<a href="{escapeHtml(address["address"])}" rel="noreferrer">' if address else ""
