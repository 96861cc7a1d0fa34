"""Colors for code."""

from __future__ import annotations

import pytest

from app.lessons import highlight
from app.lessons.highlight import highlight_code, highlight_learners_code


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


def test_of_much_code_of_a_learner_only_a_part_is_coloured_and_all_of_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(highlight, "MOST_OF_LEARNERS", 20)

    short, long, other, last = highlight_learners_code(["x = f(1)", "<b>" * 10, "y = 2", "z = '<i>' * 3"])

    assert "<span" in short
    assert long == "&lt;b&gt;" * 10
    assert "<span" in other
    assert last == "z = &#39;&lt;i&gt;&#39; * 3"
