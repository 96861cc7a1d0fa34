"""Gives matplotlib a font for Korean and Chinese, after its own: DejaVu Sans has no glyphs for them."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.font_manager import fontManager

_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "Droid Sans Fallback",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "NanumGothic",
)
"""Families of which one is usually installed, the best first; each of them but the last has both scripts."""


def use_east_asian_font() -> None:
    """Make the first installed one the fallback for missing glyphs, also after ``rcdefaults``."""
    installed = {font.name for font in fontManager.ttflist}
    if found := next((name for name in _FONTS if name in installed), None):
        for settings in (mpl.rcParams, mpl.rcParamsDefault):
            settings["font.family"] = ["sans-serif", found]
