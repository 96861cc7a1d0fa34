"""What a display says where there is only text."""

from __future__ import annotations

from typing import Any

import pytest

from app.runs.display_text import display_text

PLOTLY, VEGA = "application/vnd.plotly.v1+json", "application/vnd.vegalite.v6+json"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/plain": "42"}, "42"),
        ({"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "# Hi"}, "# Hi"),
        ({"text/plain": "<IPython.core.display.Math object>", "text/latex": "$x$"}, "$x$"),
        ({"text/plain": "x**2", "text/latex": "$x^2$"}, "x**2"),
        ({"text/plain": "Figure({'data': …})", PLOTLY: {}}, "(interactive plot)"),
        ({"text/plain": "<VegaLite 6 object>\nIf you see this message, …", VEGA: {}}, "(interactive plot)"),
        ({"text/plain": "loss: a: 0.3 at step 2", PLOTLY: {}}, "loss: a: 0.3 at step 2"),
        ({PLOTLY: {}}, "(interactive plot)"),
        ({"text/html": "<b>1</b>"}, ""),
        ({"text/plain": ["no", "text"], "text/markdown": 3}, ""),
    ],
)
def test_the_text_of_a_display_is_its_source_or_a_word(data: dict[str, Any], text: str) -> None:
    assert display_text(data) == text
