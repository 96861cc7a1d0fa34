"""A lesson as slides: one HTML file without scripts, with a slide for each heading.

The browser scrolls from slide to slide (Page Down, the space bar, a swipe) and prints one on each page. A long slide is
taller than the window, so nothing is cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

SLIDES_BLOCK = """\
{%- block any_cell scoped -%}
{%- if cell.metadata.slide_start -%}{% if not loop.first %}</section>{% endif %}<section class="slide">{%- endif -%}
{{ super() }}
{%- if loop.last %}</section>{% endif -%}
{%- endblock -%}
"""
"""Goes into the template of a page: each slide is a section."""
SLIDES_STYLE = """\
<style>
html { scroll-snap-type: y proximity; }
body.jp-Notebook { padding: 0; }
.slide { box-sizing: border-box; min-height: 100vh; padding: 5vh 7vw; scroll-snap-align: start; }
.slide + .slide { border-top: 1px solid #8888; }
.slide:first-of-type { display: flex; flex-direction: column; justify-content: center; }
html:root { --jp-content-font-size1: clamp(16px, 1.6vw, 26px); --jp-code-font-size: clamp(14px, 1.3vw, 21px); }
.slide.slide table { font-size: 0.8em; }
.slide .jp-InputPrompt, .slide .jp-OutputPrompt { display: none; }
@media print { .slide { min-height: auto; break-after: page; border: 0; } }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
</style>
"""
_HEADING = re.compile(r"#{1,3}\s")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


def as_slides(made: NotebookNode) -> NotebookNode:
    """The notebook with its text split at headings, and the first cell of each slide marked."""
    return NotebookNode(made | {"cells": list(_cells(made))})


def _cells(made: NotebookNode) -> Iterator[NotebookNode]:
    first = True
    for cell in made.cells:
        if cell.metadata.get("lockstep", {}).get("setup") or cell.get("id") == "lockstep-machine":
            continue  # slides are shown, not run
        parts = _split(cell.source) if cell.cell_type == "markdown" else [cell.source]
        for number, part in enumerate(parts):
            is_start = first or (cell.cell_type == "markdown" and _HEADING.match(part) is not None)
            first = False
            metadata = NotebookNode(cell.metadata | {"slide_start": is_start})
            yield NotebookNode(cell | {"source": part, "metadata": metadata, "id": f"{cell.get('id', '')}-{number}"})


def _split(source: str) -> list[str]:
    """A text in pieces that begin with a heading, except for the first."""
    pieces: list[list[str]] = [[]]
    fence = ""
    for line in source.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line.strip(" \t`~") else fence
        elif mark:
            fence = mark[1]
        elif _HEADING.match(line) and any(pieces[-1]):
            pieces.append([])
        pieces[-1].append(line)
    return ["\n".join(piece) for piece in pieces if any(piece)]
