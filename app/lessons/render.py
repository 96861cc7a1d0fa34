"""Renders a Document without blocking errors as a Lesson: prose as HTML, code as highlighted HTML.

No input is trusted to be HTML: raw HTML is reduced to simple formatting, links are checked again, and there are no
inline styles, because the content security policy would ignore them. Words that this module adds (“Note”) are in the
lesson's language.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from app.i18n import gettext, use_language
from app.lessons.document import Document, SourceCell
from app.lessons.exercise_cells import is_exercise
from app.lessons.exercise_files import NO_EXERCISE_FILES, ExerciseFiles
from app.lessons.formulas import keep_punctuation, scrolling_formula
from app.lessons.highlight import highlight_code
from app.lessons.labels import Labels
from app.lessons.learner_source import learner_source
from app.lessons.links import InvalidLink, parse_link
from app.lessons.machine_options import resolve_machine_options
from app.lessons.markdown import LESSON_PARSER
from app.lessons.model import Block, Cell, CellTag, Lesson, LessonStatus, Prose
from app.lessons.optional_sections import begins_optional
from app.lessons.raw_html import clean_html_block
from app.lessons.render_directives import OPTIONAL_NOTE, DirectiveRenderer, formula, picture_html
from app.lessons.render_exercises import RenderTokens, render_exercise, render_question
from app.lessons.roles import label_words, render_role
from app.lessons.solution_marks import split_marked_code

RENDERER_VERSION = "6"
"""Part of every digest: increase it when the HTML of a source changes."""


def render_lesson(
    document: Document,
    *,
    course: str,
    slug: str,
    languages: tuple[str, ...],
    path: Path,
    digest: str,
    files: ExerciseFiles = NO_EXERCISE_FILES,
) -> Lesson:
    """Render a document that has no blocking errors."""
    header = document.header
    renderer = LessonRenderer(LESSON_PARSER)
    env = {**document.parsed.env, "slug": slug, "folder": path.parent, "labels": document.survey.labels}

    def render(tokens: Sequence[Token]) -> Markup:
        return Markup(renderer.render(tokens, LESSON_PARSER.options, env).strip())  # noqa: S704 - escapes everything

    machine = resolve_machine_options(header)
    with use_language(document.language):
        cells = tuple(_render_cell(cell, document, files, render) for cell in document.cells)
        blocks = tuple(_render_blocks(document, cells, render))
    return Lesson(
        course=course,
        slug=slug,
        language=document.language,
        languages=languages,
        title=header.title or slug,
        summary=header.summary or "",
        minutes=header.minutes or 1,
        tags=header.tags or (),
        status=header.status or LessonStatus.draft,
        topology=machine.topology,
        keras=machine.keras,
        topologies=machine.topologies,
        kerases=machine.kerases,
        requires=header.requires or (),
        blocks=blocks,
        toc=tuple(document.survey.headings),
        cells=cells,
        source=learner_source(document),
        source_path=path,
        digest=digest,
        was=header.was or (),
        optional=document.optional,
        publish_at=header.publish_at if header.status not in (None, LessonStatus.draft) else None,
    )


def content_digest(*parts: str) -> str:
    """A short digest of these texts and the version of this renderer."""
    whole = hashlib.sha256(RENDERER_VERSION.encode())
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        whole.update(len(encoded).to_bytes(8, "big") + encoded)
    return whole.hexdigest()[:24]


@lru_cache(maxsize=128)
def _highlight_cell(code: str) -> Markup:
    """The translations of a lesson, which are loaded one after the other, have the same code."""
    return highlight_code(code, "python")


def _render_cell(cell: SourceCell, document: Document, files: ExerciseFiles, render: RenderTokens) -> Cell:
    marked = split_marked_code(cell.code, cell.line)[0] if is_exercise(cell) else None
    code = marked.starter if marked else cell.code
    machine = resolve_machine_options(cell, resolve_machine_options(document.header))
    return Cell(
        name=cell.name,
        title=cell.title or cell.name.replace("-", " ").capitalize(),
        language="python",
        code=code,
        line=cell.line,
        topology=machine.topology,
        keras=machine.keras,
        topologies=machine.topologies,
        kerases=machine.kerases,
        tags=cell.tags or frozenset(),
        expect=cell.expect or (),
        highlighted=_highlight_cell(code),
        exercise=render_exercise(cell, marked, document, files, render) if marked else None,
        was=cell.was or (),
    )


_NOT_SHOWN = ("dropped", "myst_line_comment", "myst_block_break")


def _render_blocks(document: Document, cells: Sequence[Cell], render: RenderTokens) -> Iterator[Block]:
    """Split the tokens at cells and questions; what lies between is prose.

    An exercise or a solution that contains cells is continued below each of them.
    """
    cell_at = {source.fence_line: cell for source, cell in zip(document.cells, cells, strict=True)}
    question_at = {question.line: question for question in document.questions}
    stretch: list[Token] = []
    gates: list[Token] = []
    in_task = False
    for token in document.parsed.tokens:
        if token.type not in ("cell", "task_open"):
            if not in_task:
                stretch.append(token)
                if token.type == "gate_open":
                    gates.append(token)
                elif token.type == "gate_close" and gates:
                    gates.pop()
            in_task = in_task and token.type != "task_close"
            continue
        yield from _render_prose([*stretch, *map(_closing, reversed(gates))], render)
        stretch, in_task = [*map(_continued, gates)], token.type == "task_open"
        line = token.meta["directive"].line
        if in_task and line in question_at:
            yield render_question(question_at[line], render)
        elif not in_task and CellTag.remove_cell not in cell_at[line].tags:
            yield cell_at[line]
    yield from _render_prose(stretch, render)


def _closing(gate: Token) -> Token:
    return Token("gate_close", "", -1, meta=gate.meta, block=True)


def _continued(gate: Token) -> Token:
    return Token("gate_open", "", 1, meta={**gate.meta, "continued": True}, block=True)


def _render_prose(stretch: Sequence[Token], render: RenderTokens) -> Iterator[Prose]:
    shown = _without_empty_boxes(stretch)
    if shown and (html := render(shown)):
        yield Prose(html, _first_line(shown))


def _without_empty_boxes(stretch: Sequence[Token]) -> list[Token]:
    """Without what is not shown, and without boxes that are continued below a cell but have nothing more to say."""
    kept: list[Token] = []
    for token in stretch:
        if token.type in _NOT_SHOWN:
            continue
        if token.type == "gate_close" and kept and kept[-1].type == "gate_open" and kept[-1].meta.get("continued"):
            kept.pop()
        else:
            kept.append(token)
    return kept


def _first_line(tokens: Sequence[Token]) -> int:
    shown = (token for token in tokens if token.map is not None and token.type != "front_matter")
    return next((token.map[0] + 1 for token in shown if token.map), 1)


class LessonRenderer(DirectiveRenderer):
    """Renders each token type with a method. ``env`` has the lesson's ``slug``, ``folder``, and ``labels``."""

    # --- text ---

    def renderInline(self, tokens: Sequence[Token], options: OptionsDict, env: EnvType) -> str:
        return keep_punctuation(super().renderInline(tokens, options, env))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        href = str(tokens[idx].attrs.get("href", ""))
        labels: Labels = env.get("labels") or Labels()
        label = labels.by_name.get(href.removeprefix("#"))
        if label is not None:
            empty = tokens[idx + 1].type == "link_close"
            words = escapeHtml(label_words(label, labels) or href) if empty else ""
            return f'<a href="#{escapeHtml(quote(label.id))}">{words}'
        try:
            target = parse_link(href)
        except InvalidLink:
            return "<a>"
        outside = ' rel="noreferrer"' if target.kind == "outside" else ""
        title = tokens[idx].attrs.get("title")
        hint = f' title="{escapeHtml(str(title))}"' if title else ""
        return f'<a href="{escapeHtml(target.address(env["slug"]))}"{hint}{outside}>'

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return picture_html(str(tokens[idx].attrs.get("src", "")), tokens[idx].content, "", env)

    def math_inline_double(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return scrolling_formula(formula(tokens[idx].content, block=True))

    def math_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return scrolling_formula(formula(tokens[idx].content, block=False))

    def myst_role(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        name, content = tokens[idx].meta["name"], tokens[idx].content
        if name == "math":
            return scrolling_formula(formula(content, block=False))
        return render_role(name, content, env.get("labels") or Labels(), env.get("slug", ""))

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return str(tokens[idx].meta.get("html", ""))

    def footnote_ref(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        number, again = tokens[idx].meta["id"] + 1, tokens[idx].meta.get("subId", 0)
        mark = f"{number}-{again}" if again else f"{number}"
        label = escapeHtml(gettext("Footnote {number}").format(number=number))
        return (
            f'<sup class="footnote-ref"><a href="#fn{number}" id="fnref{mark}" aria-label="{label}">{number}</a></sup>'
        )

    # --- blocks ---

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        name = escapeHtml(str(token.attrs.get("id", "")))
        anchor = f'<a class="anchor" href="#{name}">' if _can_hold_link(tokens[idx + 1]) else ""
        return f'<{token.tag} id="{name}">{anchor}'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        end = "</a>" if _can_hold_link(tokens[idx - 1]) else ""
        note = f'<p class="fine">{escapeHtml(gettext(OPTIONAL_NOTE))}</p>\n' if begins_optional(tokens[idx - 2]) else ""
        return f"{end}</{tokens[idx].tag}>\n{note}"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = tokens[idx].info.split()
        language = words[0] if words else "text"
        code = highlight_code(tokens[idx].content.removesuffix("\n"), language)
        return f'<pre class="listing" tabindex="0"><code class="language-{escapeHtml(language)}">{code}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        code = escapeHtml(tokens[idx].content.removesuffix("\n"))
        return f'<pre class="listing" tabindex="0"><code>{code}</code></pre>\n'

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return clean_html_block(tokens[idx].content)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        columns = _header_cells(tokens, idx)
        label = escapeHtml(gettext("Table: {columns}").format(columns=", ".join(columns)))
        return f'<div class="table-scroll" role="group" tabindex="0" aria-label="{label}"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<th scope="col"{_alignment(tokens[idx])}>'

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<td{_alignment(tokens[idx])}>"

    def footnote_block_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        label = escapeHtml(gettext("Footnotes"))
        return f'<section class="footnotes" role="doc-endnotes" aria-label="{label}"><ol>\n'

    def footnote_block_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</ol></section>\n"

    def footnote_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<li id="fn{tokens[idx].meta["id"] + 1}">'

    def footnote_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</li>\n"

    def footnote_anchor(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        number, again = tokens[idx].meta["id"] + 1, tokens[idx].meta.get("subId", 0)
        mark = f"{number}-{again}" if again else f"{number}"
        label = escapeHtml(gettext("Back to the text"))
        return f' <a class="footnote-back" href="#fnref{mark}" aria-label="{label}">↩\ufe0e</a>'

    # --- nothing to show ---

    def _nothing(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return ""

    front_matter = myst_line_comment = myst_block_break = include = dropped = _nothing


def _can_hold_link(inline: Token) -> bool:
    inside = inline.children or []
    return bool(inside) and all(child.type not in ("link_open", "footnote_ref") for child in inside)


def _header_cells(tokens: Sequence[Token], idx: int) -> list[str]:
    row: list[str] = []
    for i in range(idx, len(tokens)):
        if tokens[i].type == "tr_close":
            break
        if tokens[i].type == "th_open":
            row.append("".join(child.content for child in tokens[i + 1].children or ()))
    return [text for text in row if text]


def _alignment(token: Token) -> str:
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f' class="{side}"' if side in ("center", "right") else ""
