"""Colors for code."""

from __future__ import annotations

from app.lessons.highlight import highlight_code


def test_a_called_name_is_coloured_as_a_function() -> None:
    assert '<span class="nf">MirroredStrategy</span>' in highlight_code(
        "s = tf.distribute.MirroredStrategy()", "python"
    )


def test_a_name_that_is_not_called_stays_plain() -> None:
    html = highlight_code("x = strategy\ny = (strategy)\nz = strategy", "python")

    assert "nf" not in html
    assert html.count("strategy") == 3


def test_code_in_a_language_nobody_knows_is_escaped() -> None:
    assert highlight_code("<b>", "klingon") == "&lt;b&gt;"
