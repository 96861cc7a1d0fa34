"""Inlines a lesson's SVG files into the page so that they follow the theme: ``fill="var(--r0, #0072b2)"``.

A file opts in with ``<svg class="drawing" …>``. Only shapes, text and presentation attributes are allowed: nothing that
runs, loads or styles anything, and no IDs. The second value of ``var`` is for readers outside the page, such as
notebooks. Pure, except for ``inline_svg_file``.

A drawing may have steps, which the page shows one after another: an element with ``data-steps="2-4"`` is visible from
step 2 to step 4, one with ``2`` in that step, and one with ``2-`` from there on. The file itself shows the last step:
what isn't part of it has ``display="none"``. So the drawing can be read without a script, and in notebooks.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from markdown_it.common.utils import escapeHtml
from markupsafe import Markup

MAX_SVG_BYTES = 60_000
MAX_STEPS = 40

_SVG = "{http://www.w3.org/2000/svg}"
_SHAPES = frozenset(("g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"))
_TEXT_ALTERNATIVES = frozenset(("title", "desc"))
_GEOMETRY = "x y x1 y1 x2 y2 cx cy dx dy r rx ry width height d points transform"
_PRESENTATION = (
    "fill fill-opacity stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin opacity "
    "font-family font-size font-style font-weight letter-spacing text-anchor dominant-baseline"
)
_ATTRIBUTES = frozenset(f"{_GEOMETRY} {_PRESENTATION} data-steps display".split())
_ROOT_ATTRIBUTES = frozenset(("class", "width", "height", "viewBox", "role", "aria-labelledby", "aria-label"))
_VALUE = re.compile(r"[\w\s.,#%+*'()-]*", re.ASCII)
_INLINE_MARKER = re.compile(rb'<svg\b[^>]*\sclass="drawing"')
_STEPS = re.compile(r"([1-9][0-9]?)(-?)([1-9][0-9]?)?")
_VIEW_BOX = re.compile(r"0 0 ([1-9][0-9]{0,3}) ([1-9][0-9]{0,3})")


class InvalidSvg(Exception):
    """The file cannot be inlined. ``str()`` says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing as HTML, and the number of its steps; 0 if it doesn't move."""

    html: Markup
    steps: int


def inline_svg_file(file: Path, alt: str) -> Drawing | None:
    """The drawing in a file; None for a file that does not opt in. ``alt`` is the alternative text.

    Raises:
        InvalidSvg: it has something that is not allowed.
    """
    if file.suffix != ".svg":
        return None
    try:
        with file.open("rb") as opened:
            source = opened.read(MAX_SVG_BYTES + 1)
    except OSError:
        return None
    return inline_svg(source, alt) if _INLINE_MARKER.search(source) else None


def inline_svg(source: bytes, alt: str) -> Drawing:
    """The drawing. Raises InvalidSvg, like ``inline_svg_file``."""
    if len(source) > MAX_SVG_BYTES:
        raise InvalidSvg(f"it has more than {MAX_SVG_BYTES:,} bytes")
    if b"<!DOCTYPE" in source.upper() or b"<!ENTITY" in source.upper():
        raise InvalidSvg("it declares a document type; remove it")
    try:
        root = ET.fromstring(source.decode())  # noqa: S314 - without declarations, no entities can expand
    except (ET.ParseError, ValueError) as e:
        raise InvalidSvg(f"it is not well-formed XML: {e}") from e
    size = _VIEW_BOX.fullmatch(root.get("viewBox", ""))
    if root.tag != f"{_SVG}svg" or size is None:
        raise InvalidSvg('it must be an <svg> with viewBox="0 0 WIDTH HEIGHT"')
    _check_attributes(root, _ROOT_ATTRIBUTES)
    words = root.find(f"{_SVG}desc")
    description = f"<desc>{escapeHtml(words.text or '')}</desc>" if words is not None else ""
    try:
        shapes = "".join(_element_html(child) for child in root)
    except RecursionError:
        raise InvalidSvg("its elements are nested too deeply") from None
    steps = _count_steps(root)
    counted = f' data-step-count="{steps}"' if steps else ""
    name = f'role="img" aria-label="{escapeHtml(alt)}"'
    html = Markup(  # noqa: S704 - escaped piece by piece
        f'<svg class="drawing"{counted} {name} viewBox="{size[0]}" width="{size[1]}" height="{size[2]}">'
        f"{description}{shapes}</svg>"
    )
    return Drawing(html, steps)


def _element_html(element: ET.Element) -> str:
    tag = element.tag.removeprefix(_SVG) if isinstance(element.tag, str) else ""
    if tag in _TEXT_ALTERNATIVES:
        return ""
    if tag not in _SHAPES or element.tag == tag:
        raise InvalidSvg(f"it has <{tag or 'something that is not an element'}>; a drawing has only shapes and text")
    _check_attributes(element, _ATTRIBUTES)
    attributes = "".join(f' {name}="{escapeHtml(value)}"' for name, value in element.items())
    keeps_text = tag in ("text", "tspan")
    inside = escapeHtml(element.text or "") if keeps_text else ""
    for child in element:
        inside += _element_html(child) + (escapeHtml(child.tail or "") if keeps_text else "")
    return f"<{tag}{attributes}>{inside}</{tag}>"


def _check_attributes(element: ET.Element, allowed: frozenset[str]) -> None:
    for name, value in element.items():
        plain = name.rpartition("}")[2]
        if name not in allowed:
            raise InvalidSvg(f"it has the attribute '{plain}'; use fill and stroke for colors, and no links or styles")
        if name == "data-steps":
            _step_range(value)
        if name == "display" and value != "none":
            raise InvalidSvg(f"its attribute 'display' is {value[:40]!r}; write none, or leave it out")
        if element.tag != f"{_SVG}svg" and ("url" in value.lower() or not _VALUE.fullmatch(value)):
            raise InvalidSvg(f"its attribute '{plain}' is {value[:40]!r}; write numbers, words and var(--colour, #…)")


def _count_steps(root: ET.Element) -> int:
    """The number of steps. Each has to change something, and the file has to show the last one."""
    moving = [(element, *_step_range(element.get("data-steps", ""))) for element in root.iter() if _moves(element)]
    count = max((last or first for _, first, last in moving), default=0)
    changes = {first for _, first, _ in moving} | {last + 1 for _, _, last in moving if last}
    still = next((step for step in range(2, count + 1) if step not in changes), None)
    if count > MAX_STEPS:
        raise InvalidSvg(f"it has {count} steps; draw at most {MAX_STEPS}")
    if count == 1 or still:
        raise InvalidSvg(f"nothing changes in step {still or 2} of {max(count, 2)}; number the steps without gaps")
    for element, _, last in moving:
        if (last is None or last == count) != ("display" not in element.attrib):
            steps = f'data-steps="{element.get("data-steps")}"'
            wrong = "lacks" if "display" not in element.attrib else "has"
            raise InvalidSvg(
                f'an element with {steps} {wrong} display="none", with which the file itself shows step {count}, the '
                "last one; write it for the elements of earlier steps, and for no others"
            )
    return count


def _moves(element: ET.Element) -> bool:
    return "data-steps" in element.attrib or "display" in element.attrib


def _step_range(written: str) -> tuple[int, int | None]:
    """The first and the last step in which an element is visible; None if it remains to the end."""
    steps = _STEPS.fullmatch(written)
    first, last = (int(steps[1]), int(steps[3] or steps[1])) if steps else (1, 0)
    if steps is None or last < first or (steps[3] and not steps[2]):
        raise InvalidSvg(f"the data-steps of an element are {written[:40]!r}; write a step, 2, or several, 2-4 or 2-")
    return first, None if steps[2] and not steps[3] else last
