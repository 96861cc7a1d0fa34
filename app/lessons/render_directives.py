"""Renders the tokens of directives; ``LessonRenderer`` renders everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from app.i18n import N_, gettext
from app.lessons.bibliography import CitedWork
from app.lessons.directive_specs import ADMONITIONS
from app.lessons.directives import Directive
from app.lessons.formulas import InvalidFormula, latex_to_mathml
from app.lessons.highlight import highlight_code
from app.lessons.inline_svg import InvalidSvg, inline_svg_file
from app.lessons.labels import Labels
from app.lessons.links import InvalidLink, LinkTarget, parse_link
from app.lessons.roles import LABEL_WORDS, render_role, solution_title

ADMONITION_TITLES = {
    "note": N_("Note"),
    "tip": N_("Tip"),
    "hint": N_("Hint"),
    "important": N_("Important"),
    "warning": N_("Warning"),
    "caution": N_("Caution"),
    "attention": N_("Attention"),
    "danger": N_("Danger"),
    "error": N_("Error"),
    "seealso": N_("See also"),
}
OPTIONAL_NOTE = N_("Optional: you can complete the lesson without this section, and its minutes do not include it.")
"""Below the heading of an optional section."""
_SAME_LOOK = {"attention": "caution", "danger": "warning", "error": "warning"}
_PERCENTAGES = (25, 50, 75, 100)


class DirectiveRenderer(RendererHTML):
    """``env`` has the lesson's ``slug``, ``folder``, and ``labels``."""

    # --- admonitions, exercises, and other boxes ---

    def admonition_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        own = ADMONITION_TITLES.get(directive.name)
        if is_collapsible(directive):
            shown = " open" if "open" in directive.options else ""
            untitled = gettext(own) if own else "" if directive.argument else gettext("More")
            summary = f"<summary>{escapeHtml(untitled)}</summary>\n" if untitled else ""
            return f'<details class="admonition dropdown"{_id(tokens[idx])}{shown}>\n{summary}'
        title = f'<p class="admonition-title">{escapeHtml(gettext(own))}</p>\n' if own else ""
        return f'<div class="admonition {_look(directive)}" role="note"{_id(tokens[idx])}>\n{title}'

    def admonition_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</details>\n" if is_collapsible(tokens[idx].meta["directive"]) else "</div>\n"

    def gate_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        kind = directive.name.partition("-")[0]
        continued = bool(tokens[idx].meta.get("continued"))
        title = _gate_title(tokens[idx], _labels(env))
        if continued and kind == "solution":
            title = gettext("{title}, continued").format(title=title)
        if kind == "solution" and tokens[idx + 1].type == "gate_close":  # its cell, which is below, is hidden itself
            return f"<p{_id(tokens[idx])}><strong>{escapeHtml(title)}</strong>"
        if kind == "solution":
            summary = f"<summary>{escapeHtml(title)}</summary>\n"
            return f'<details class="admonition dropdown solution"{_id(tokens[idx])}>\n{summary}'
        untitled = continued or directive.argument
        heading = "" if untitled else f'<p class="admonition-title">{escapeHtml(title)}</p>\n'
        return f'<div class="admonition exercise" role="note"{_id(tokens[idx])}>\n{heading}'

    def gate_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        if not tokens[idx].meta["directive"].name.startswith("solution"):
            return "</div>\n"
        return "</p>\n" if tokens[idx - 1].type == "gate_open" else "</details>\n"

    def box_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        match directive.spec.kind:
            case "tabs":
                env["tab_sets"] = number = int(env.get("tab_sets", 0)) + 1
                env.setdefault("open_tabs", []).append([number, 0, _selected_tab(tokens, idx)])
                label = escapeHtml(gettext("Tabs"))
                return f'<div class="tabs" role="group" aria-label="{label}"{_id(tokens[idx])}>\n'
            case "tab":
                return ""
            case "grid":
                return f'<div class="lesson-grid"{_id(tokens[idx])}>\n'
            case "glossary":
                return f'<div class="glossary"{_id(tokens[idx])}>\n'
        look = "grid-item" if directive.name == "grid-item" else "lesson-card"
        return f'<div class="{look}"{_id(tokens[idx])}>\n'

    def box_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        if tokens[idx].meta["directive"].spec.kind == "tabs" and env.get("open_tabs"):
            env["open_tabs"].pop()
        return "</div>\n"

    def card_header_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="card-header">\n'

    def card_header_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</div>\n"

    def card_footer_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="card-footer">\n'

    card_footer_close = card_header_close

    # --- captions ---

    def caption_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        match directive.spec.kind:
            case "table" | "list-table" | "csv-table":
                return f"<figcaption>{_caption_number(tokens[idx - 1], 'table')}"
            case "tab":
                return _tab_button(env)
            case "card":
                return f'<p class="card-heading">{_link_to(directive.option("link"), env)}'
            case "gate-start" | "task":
                return f'<p class="admonition-title">{escapeHtml(_gate_title(tokens[idx - 1], _labels(env)))}: '
        return "<summary>" if is_collapsible(directive) else '<p class="admonition-title">'

    def caption_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        match directive.spec.kind:
            case "table" | "list-table" | "csv-table":
                return "</figcaption>\n"
            case "tab":
                return '</label><div class="tab-panel">\n'
            case "card":
                return f"{'</a>' if _link_to(directive.option('link'), env) else ''}</p>\n"
            case "gate-start" | "task":
                return "</p>\n"
        return "</summary>\n" if is_collapsible(directive) else "</p>\n"

    def captioned_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        number = "" if tokens[idx].meta["directive"].argument else _caption_number(tokens[idx], "table")
        caption = f"<figcaption>{number}</figcaption>\n" if number else ""
        return f'<figure class="captioned"{_id(tokens[idx])}>\n{caption}'

    def captioned_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</figure>\n"

    # --- pictures, videos, code, formulas ---

    def figure_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        match directive.spec.kind:
            case "video":
                media = _video(directive, env)
            case "glue":
                media = f"<p>{render_role(directive.name, directive.argument, _labels(env), '')}</p>"
            case _:
                media = picture(directive, env)
        number = _caption_number(tokens[idx], "equation" if directive.name == "glue:math" else "figure")
        caption = f"<figcaption>{number}\n" if directive.body.strip() or number else ""
        return f"<figure{_id(tokens[idx])}>{media}{caption}"

    def figure_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        directive: Directive = tokens[idx].meta["directive"]
        captioned = directive.body.strip() or tokens[idx].meta.get("number")
        return "</figcaption></figure>\n" if captioned else "</figure>\n"

    def picture(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<p{_id(tokens[idx])}>{picture(tokens[idx].meta['directive'], env)}</p>\n"

    def listing(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token, directive = tokens[idx], tokens[idx].meta["directive"]
        language = token.info.split()[0] if token.info.split() else "text"
        code = highlight_code(
            token.content.removesuffix("\n"), "python" if language.startswith("ipython") else language
        )
        name = "mermaid" if directive.name == "mermaid" else language
        shown = f'<pre class="listing" tabindex="0"><code class="language-{escapeHtml(name)}">{code}</code></pre>'
        number, caption = _caption_number(token, "listing"), escapeHtml(directive.option("caption"))
        if not number and not caption:
            return f"{shown}\n"
        return f'<figure class="captioned"{_id(token)}>\n<figcaption>{number}{caption}</figcaption>\n{shown}</figure>\n'

    def math_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        number = tokens[idx].meta.get("number")
        shown = formula(tokens[idx].content, block=True)
        if number is None:
            return f'<div class="math" tabindex="0">{shown}</div>\n'
        return f'<div class="math numbered" tabindex="0"{_id(tokens[idx])}>{shown}<span>({number})</span></div>\n'

    def bibliography(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        works: list[CitedWork] = tokens[idx].meta["works"]
        if "all" not in tokens[idx].meta["directive"].options:
            works = [work for work in works if work.key in _labels(env).cited]
        entries = "".join(
            _work(work) for work in sorted(works, key=lambda work: [part.casefold() for part in work.citation])
        )
        return f'<ul class="bibliography"{_id(tokens[idx])}>\n{entries}</ul>\n' if entries else ""

    def myst_target(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<div{_id(tokens[idx])}></div>\n" if tokens[idx].meta.get("id") else ""


def is_collapsible(directive: Directive) -> bool:
    """Whether the box opens on a click."""
    return directive.name == "dropdown" or "dropdown" in directive.classes


def formula(latex: str, *, block: bool) -> str:
    """A formula as MathML, or its LaTeX if it cannot be read."""
    try:
        return latex_to_mathml(latex, block=block)
    except InvalidFormula:
        return f"<code>{escapeHtml(latex)}</code>"


def picture(directive: Directive, env: Any) -> str:
    """The picture of a directive."""
    return picture_html(directive.argument, directive.option("alt"), directive.option("width"), env)


def picture_html(source: str, alt: str, width: str, env: Any) -> str:
    """A picture of the lesson. Others are not shown: a link to the web, or their alternative text."""
    target = _target(source)
    if target is not None and target.kind == "outside" and target.name.startswith("http"):
        return f'<a href="{escapeHtml(target.name)}" rel="noreferrer">{escapeHtml(alt or target.name)}</a>'
    if target is None or target.kind != "asset":
        return escapeHtml(alt)
    with suppress(InvalidSvg):
        if (drawing := inline_svg_file(env["folder"] / target.name, alt)) is not None:
            return str(drawing.html)  # plain text for whatever joins it: Markup would escape its neighbors
    address = escapeHtml(target.address(env["slug"]))
    return f'<img src="{address}" alt="{escapeHtml(alt)}"{_width(width)} loading="lazy" decoding="async">'


def _video(directive: Directive, env: Any) -> str:
    target = _target(directive.argument)
    words = escapeHtml(directive.option("alt") or directive.argument)
    if target is None or target.kind != "asset":
        outside = target is not None and target.kind == "outside" and target.name.startswith("http")
        return f'<a href="{escapeHtml(directive.argument)}" rel="noreferrer">{words}</a>' if outside else words
    address = escapeHtml(target.address(env["slug"]))
    width = _width(directive.option("width"))
    return f'<video controls preload="metadata" src="{address}" aria-label="{words}"{width}></video>'


def _target(source: str) -> LinkTarget | None:
    try:
        return parse_link(source)
    except InvalidLink:
        return None


def _width(width: str) -> str:
    pixels = width.removesuffix("px")
    if pixels.isascii() and pixels.isdigit():
        return f' width="{pixels}"'
    share = width.removesuffix("%").partition(".")[0]
    if width.endswith("%") and share.isascii() and share.isdigit():
        nearest = min(_PERCENTAGES, key=lambda percentage: abs(percentage - int(share)))
        return f' class="width-{nearest}"'
    return ""


def _labels(env: Any) -> Labels:
    labels: Labels = env.get("labels") or Labels()
    return labels


def _id(token: Token) -> str:
    """The ``id`` attribute of a token with a label."""
    name = token.meta.get("id") if token.meta else None
    return f' id="{escapeHtml(str(name))}"' if name and not token.meta.get("continued") else ""


def _look(directive: Directive) -> str:
    if directive.name in ADMONITIONS:
        return _SAME_LOOK.get(directive.name, directive.name)
    if directive.name in ("margin", "sidebar", "topic"):
        return "topic" if directive.name == "topic" else "margin"
    look = next((name for name in directive.classes if name in ADMONITIONS), "note")
    return _SAME_LOOK.get(look, look)


def _gate_title(token: Token, labels: Labels) -> str:
    directive: Directive = token.meta["directive"]
    if directive.name.startswith("solution"):
        return solution_title(directive.argument, labels)
    number = token.meta.get("number")
    return gettext("Exercise {number}").format(number=number) if number else gettext("Exercise")


def _caption_number(token: Token, kind: str) -> str:
    number = token.meta.get("number") if token.meta else None
    if not number:
        return ""
    words = gettext(LABEL_WORDS[kind]).format(number=number)
    return f'<span class="caption-number">{escapeHtml(words)}</span> '


def _selected_tab(tokens: Sequence[Token], idx: int) -> int:
    """The number of the tab of this set that is open at first, from 1."""
    for number, token in enumerate(_tabs(tokens, idx), 1):
        if "selected" in token.meta["directive"].options:
            return number
    return 1


def _tabs(tokens: Sequence[Token], idx: int) -> Iterator[Token]:
    depth = 0
    for token in (tokens[i] for i in range(idx, len(tokens))):
        if token.type == "box_open" and token.meta["directive"].spec.kind == "tab" and depth == 1:
            yield token
        if token.type in ("box_open", "box_close"):
            depth += token.nesting
            if depth == 0:
                return


def _tab_button(env: Any) -> str:
    if not env.get("open_tabs"):
        env["tab_sets"] = int(env.get("tab_sets", 0)) + 1
        number, tab, selected = env["tab_sets"], 1, 1
    else:
        env["open_tabs"][-1][1] += 1
        number, tab, selected = env["open_tabs"][-1]
    checked = " checked" if tab == selected else ""
    name = f"tabs-{number}"
    return f'<input type="radio" name="{name}" id="{name}-{tab}"{checked}><label for="{name}-{tab}">'


def _link_to(address: str, env: Any) -> str:
    """The tag that opens a card's link; empty if its address is not one that lessons support."""
    target = _target(address) if address else None
    if target is None:
        return ""
    outside = ' rel="noreferrer"' if target.kind == "outside" else ""
    return f'<a href="{escapeHtml(target.address(env["slug"]))}"{outside}>'


def _work(work: CitedWork) -> str:
    who, when = work.citation
    people = work.fields.get("author") or work.fields.get("editor") or ""
    parts = [f"{escapeHtml(people.replace(' and ', '; ') or who)} ({escapeHtml(when)})."]
    if people and work.fields.get("title"):
        parts.append(f"<cite>{escapeHtml(work.fields['title'])}</cite>.")
    if work.source:
        parts.append(f"{escapeHtml(work.source)}.")
    if work.address:
        address = escapeHtml(work.address)
        parts.append(f'<a href="{address}" rel="noreferrer">{address}</a>')
    return f'<li id="{escapeHtml(f"cite-{work.key}")}">{" ".join(parts)}</li>\n'
