"""What a display says in a terminal or in a file of text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLOTS = {
    "application/vnd.plotly.v1+json": "plotly",
    "application/vnd.vegalite.v5+json": "vega",
    "application/vnd.vegalite.v6+json": "vega",
}
"""The script that draws each type of plot, see ``app/runs/frontend/plots``."""
_SOURCES = ("text/markdown", "text/latex")
"""Their plain text is only the name of a class."""
_CLASS = "<IPython."
_PLOTLY, _VEGA = "Figure(", "<VegaLite"
"""How the plain text of a plot begins: the whole figure as Python code, or advice for another page."""


def display_text(data: Mapping[str, Any]) -> str:
    """The text of a display, by media type: its source if that is text, and no more than a word about a plot."""
    plain = data.get("text/plain")
    text = plain if isinstance(plain, str) else ""
    if any(media_type in data for media_type in PLOTS) and (not text or text.startswith((_PLOTLY, _VEGA))):
        return "(interactive plot)"
    if text.startswith(_CLASS):
        return next((data[name] for name in _SOURCES if isinstance(data.get(name), str)), text)
    return text
