"""The badges: one drawing for each achievement, a file of ``badges/``, on a grid of 64.

A drawing names its colours by class alone (``app/web/frontend/badge.css``): ``f`` fills and ``s`` strokes in the colour
of a replica (``r0`` to ``r7``), ``i`` and ``k`` are ink, ``t`` is a thin line, ``cut`` and ``stop`` are paper. So the
same file serves light and dark, and in outline a badge that is not earned yet.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup

BADGES_DIR = Path(__file__).parent / "badges"
HIDDEN_BADGE = "hidden"
"""What stands for an achievement that is kept secret until it is earned."""
_SVG_WRAPPER = re.compile(r"^<svg[^>]*>|</svg>\s*$")


@lru_cache
def badge_svg(name: str) -> Markup:
    """The drawing, to stand inside an ``<svg viewBox="0 0 64 64">``; that of what is hidden for a name there is not."""
    file = BADGES_DIR / f"{name if name in badge_names() else HIDDEN_BADGE}.svg"
    return Markup(_SVG_WRAPPER.sub("", file.read_text()))  # noqa: S704 - our own files


@lru_cache
def badge_names() -> frozenset[str]:
    """The name of every badge."""
    return frozenset(file.stem for file in BADGES_DIR.glob("*.svg"))
