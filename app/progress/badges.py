"""The badges of achievements: SVG files in ``badges/``, on a grid of 64 by 64.

A badge uses classes instead of colors (``frontend/badge.css``): ``f`` fills and ``s`` strokes in the color of a
replica (``r0`` to ``r7``), ``i`` and ``k`` are ink, ``t`` is a thin line, ``cut`` and ``stop`` are paper. So one file
serves the light and dark themes, and the outline of a badge that is not earned yet.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

BADGES_DIR = Path(__file__).parent / "badges"
HIDDEN_BADGE = "hidden"
"""Shown instead of a secret achievement's badge."""
_SVG_WRAPPER = re.compile(r"^<svg[^>]*>|</svg>\s*$")


@lru_cache
def badge_svg(name: str) -> Markup:
    """The content for an ``<svg viewBox="0 0 64 64">``; for an unknown name, the hidden badge."""
    file = BADGES_DIR / f"{name if name in badge_names() else HIDDEN_BADGE}.svg"
    return Markup(_SVG_WRAPPER.sub("", file.read_text()))  # noqa: S704 - our own files


@lru_cache
def badge_names() -> frozenset[str]:
    return frozenset(file.stem for file in BADGES_DIR.glob("*.svg"))
