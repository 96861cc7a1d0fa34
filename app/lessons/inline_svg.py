"""Inlines a lesson's SVG files into the page so that they follow the theme: ``fill="var(--r0, #0072b2)"``.

A file opts in with ``<svg class="drawing" …>``. Only shapes, text and presentation attributes are allowed: nothing that
runs, loads or styles anything, and no IDs. The second value of ``var`` is for readers outside the page, such as
notebooks. Pure, except for ``inline_svg_file``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from markdown_it.common.utils import escapeHtml
from markupsafe import Markup

MAX_SVG_BYTES = 60_000

_SVG = "{http://www.w3.org/2000/svg}"
_SHAPES = frozenset(("g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"))
_TEXT_ALTERNATIVES = frozenset(("title", "desc"))
_GEOMETRY = "x y x1 y1 x2 y2 cx cy dx dy r rx ry width height d points transform"
_PRESENTATION = (
    "fill fill-opacity stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin opacity "
    "font-family font-size font-style font-weight letter-spacing text-anchor dominant-baseline"
)
_ATTRIBUTES = frozenset(f"{_GEOMETRY} {_PRESENTATION}".split())
_ROOT_ATTRIBUTES = frozenset(("class", "width", "height", "viewBox", "role", "aria-labelledby", "aria-label"))
_VALUE = re.compile(r"[\w\s.,#%+*'()-]*", re.ASCII)
_INLINE_MARKER = re.compile(rb'<svg\b[^>]*\sclass="drawing"')
_VIEW_BOX = re.compile(r"0 0 ([1-9][0-9]{0,3}) ([1-9][0-9]{0,3})")


class InvalidSvg(Exception):
    """The file cannot be inlined. ``str()`` says why, and what to do."""


def inline_svg_file(file: Path, alt: str) -> Markup | None:
    """The drawing in a file as HTML; None for a file that does not opt in. ``alt`` is the alternative text.

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


def inline_svg(source: bytes, alt: str) -> Markup:
    """The drawing as HTML. Raises InvalidSvg, like ``inline_svg_file``."""
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
    name = escapeHtml(alt)
    return Markup(  # noqa: S704 - escaped piece by piece
        f'<svg class="drawing" role="img" aria-label="{name}" viewBox="{size[0]}" width="{size[1]}" height="{size[2]}">'
        f"{description}{shapes}</svg>"
    )


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
        if element.tag != f"{_SVG}svg" and ("url" in value.lower() or not _VALUE.fullmatch(value)):
            raise InvalidSvg(f"its attribute '{plain}' is {value[:40]!r}; write numbers, words and var(--colour, #…)")
