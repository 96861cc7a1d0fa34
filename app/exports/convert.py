"""Converts a lesson's notebook to a single HTML page, slides, a Python script or Markdown, with nbconvert.

Imported at the first such download, because nbconvert takes a second and 25 MB. The HTML page loads nothing from other
hosts and runs no script: formulas are MathML, pictures are embedded, and its own content security policy forbids
everything else, whatever a learner's code displayed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import nh3
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter, MarkdownExporter, PythonExporter
from nbconvert.filters.ansi import ansi2html, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from app.exports.setup_cell import NEEDS_COMMENT
from app.exports.slides import SLIDES_BLOCK, SLIDES_STYLE, as_slides
from app.lessons.formulas import InvalidFormula, latex_to_mathml
from app.lessons.python_source import without_magics
from app.lessons.untrusted_markdown import MATH_ATTRIBUTES, MATH_TAGS, render_untrusted_markdown

_PAGE_TEMPLATE = """\
{%- extends 'index.html.j2' -%}
{%- block html_head_js -%}
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>a.anchor-link { display: none } math[display="block"] { margin: 1em 0 }
@media print {
  html:root { --jp-code-font-size: 8pt }
  body.jp-Notebook .jp-Cell pre { white-space: pre-wrap; overflow-wrap: anywhere }
  .jp-CodeCell .jp-InputArea { break-inside: avoid }
  details::details-content { content-visibility: visible }
}</style>
{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
"""
_HTML_OUTPUT_TYPES = frozenset({"text/plain", "text/html", "image/png", "image/jpeg", "image/svg+xml"})
"""Every display has one of these. The other types need scripts, or are the learner's Markdown and LaTeX."""
_CLEANER = nh3.Cleaner(tags=nh3.ALLOWED_TAGS - {"img"}, clean_content_tags={"script", "style"})
_TEXT_CLEANER = nh3.Cleaner(
    tags=set(nh3.ALLOWED_TAGS) | MATH_TAGS | {"input"},
    clean_content_tags={"script", "style"},
    attributes={tag: set(names) for tag, names in nh3.ALLOWED_ATTRIBUTES.items()}
    | dict.fromkeys(MATH_TAGS, MATH_ATTRIBUTES)
    | {"*": {"class", "id", "lang", "title"}, "details": {"open"}},
    tag_attribute_values={"input": {"type": {"checkbox"}, "disabled": {""}, "checked": {""}}},
    url_schemes={"http", "https", "mailto", "data"},
    attribute_filter=lambda tag, name, value: value if tag == "img" or not value.lower().startswith("data:") else None,
    link_rel="noreferrer",
)
"""For the text of a lesson. An author may write HTML, but nothing that loads another page or sends a form: a browser
that prints a page has the rights of the server."""
_MAX_HTML_BYTES = 250_000
"""Per display. Sanitizing blocks all other threads; a larger display is shown as text."""
_MAX_HIGHLIGHT_COST = 4_000_000_000
"""In characters. nbconvert copies the rest of an output at each escape sequence; beyond this, colors are dropped."""
_ATTACHMENT = re.compile(r"\]\(attachment:([^)\s]+)\)")


def to_html(made: NotebookNode) -> str:
    """A single HTML file without scripts."""
    return _to_page(made, _PAGE_TEMPLATE)


def to_slides(made: NotebookNode) -> str:
    """Slides in a single HTML file without scripts."""
    template = _PAGE_TEMPLATE.replace("</style>\n{%- endblock -%}", f"</style>\n{SLIDES_STYLE}{{%- endblock -%}}", 1)
    return _to_page(as_slides(made), template + SLIDES_BLOCK)


def _to_page(made: NotebookNode, template: str) -> str:
    exporter = _MathMLPageExporter(raw_template=template, language_code=made.metadata.lockstep.language)
    exporter.register_filter("ansi2html", _ansi_to_html)
    return _export(exporter, NotebookNode(made | {"cells": [_sanitize_cell(cell) for cell in made.cells]}))


def to_script(made: NotebookNode) -> str:
    """The code, with prose as comments. Magics and cells for other machines, which cannot run, become comments too."""
    exporter = PythonExporter()
    exporter.register_filter("ipython2python", _without_magics)
    own = NEEDS_COMMENT.format(topology=made.metadata.lockstep.topology, keras=made.metadata.lockstep.keras)
    cells = [_commented_out(cell, own) if cell.cell_type == "code" else cell for cell in made.cells]
    return _export(exporter, NotebookNode(made | {"cells": cells}))


def to_markdown(made: NotebookNode) -> str:
    """The prose, code and outputs, with pictures embedded in the text."""
    exporter = MarkdownExporter(preprocessors=[])
    exporter.register_preprocessor("nbconvert.preprocessors.ExtractOutputPreprocessor", enabled=False)
    exporter.register_preprocessor("nbconvert.preprocessors.ExtractAttachmentsPreprocessor", enabled=False)
    cells = [_embed_attachments(cell) if cell.cell_type == "markdown" else cell for cell in made.cells]
    return _export(exporter, NotebookNode(made | {"cells": cells}))


CONVERTERS: dict[str, Callable[[NotebookNode], str]] = {
    "html": to_html,
    "slides": to_slides,
    "py": to_script,
    "markdown": to_markdown,
}
"""By the extension in the URL."""


class _MathMLPageExporter(HTMLExporter):  # type: ignore[misc]
    """nbconvert's HTML exporter, with formulas as MathML."""

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        cell = context.get("cell", {})
        if cell.get("metadata", {}).get("lockstep", {}).get("scratch"):  # a learner's text, which is not trusted
            return str(render_untrusted_markdown(source))
        renderer = _MathMLRenderer(escape=False, attachments=cell.get("attachments", {}), exclude_anchor_links=True)
        return str(_TEXT_CLEANER.clean(str(MarkdownWithMath(renderer=renderer).render(source))))


class _MathMLRenderer(IPythonRenderer):  # type: ignore[misc]
    def inline_math(self, body: str) -> str:
        return self._formula(body, block=False)

    def block_math(self, body: str) -> str:
        return self._formula(body, block=True)

    def _formula(self, latex: str, *, block: bool) -> str:
        try:
            return latex_to_mathml(latex, block=block)
        except InvalidFormula:
            return f"<code>{self.escape_html(latex)}</code>"

    def escape_html(self, text: str) -> str:
        return str(super().escape_html(text))


def _export(exporter: Any, made: NotebookNode) -> str:
    text, _ = exporter.from_notebook_node(made, {"metadata": {"name": made.metadata.lockstep.title}})
    return str(text)


def _sanitize_cell(cell: NotebookNode) -> NotebookNode:
    if cell.cell_type != "code":
        return cell
    outputs = []
    for output in cell.outputs:
        if "data" in output:
            data = {kind: content for kind, content in output.data.items() if kind in _HTML_OUTPUT_TYPES}
            if len(data.get("text/html", "")) > _MAX_HTML_BYTES:
                data = {"text/plain": ""} | {kind: content for kind, content in data.items() if kind != "text/html"}
            if "text/html" in data:
                data["text/html"] = _CLEANER.clean(data["text/html"])
            output = NotebookNode(output | {"data": NotebookNode(data)})
        outputs.append(output)
    return NotebookNode(cell | {"outputs": outputs})


def _ansi_to_html(text: str) -> str:
    return str(ansi2html(text if text.count("\x1b") * len(text) <= _MAX_HIGHLIGHT_COST else strip_ansi(text)))


def _without_magics(code: str) -> str:
    plain, magics = without_magics(code)
    return "".join(f"# {line}\n" for magic in magics for line in magic.split("\n")) + plain


def _commented_out(cell: NotebookNode, own: str) -> NotebookNode:
    """The cell, commented out if it needs another machine than the script's."""
    needs = next(
        (line for line in cell.source.split("\n")[:2] if line.startswith(NEEDS_COMMENT.partition("{")[0])), own
    )
    if needs == own:
        return cell
    return NotebookNode(cell | {"source": "\n".join(f"# {line}".rstrip() for line in cell.source.split("\n"))})


def _embed_attachments(cell: NotebookNode) -> NotebookNode:
    def embedded(match: re.Match[str]) -> str:
        ((kind, content),) = cell.get("attachments", {}).get(match[1], {"": ""}).items()
        return f"](data:{kind};base64,{content})" if kind else match[0]

    return NotebookNode(cell | {"source": _ATTACHMENT.sub(embedded, cell.source)})
