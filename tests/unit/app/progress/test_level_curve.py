"""The level curve goes on a little beyond where the learner is, and rises ever more steeply."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.progress.level_curve import MIN_LEVELS, level_steps, plot_curve
from app.progress.levels import level_for_xp, xp_for_level


@pytest.mark.parametrize("xp", [0, 99, 100, 101, 12_345, xp_for_level(40)])
def test_it_shows_what_is_reached_and_some_levels_beyond(xp: int) -> None:
    levels = level_steps(xp)

    assert [level.number for level in levels] == list(range(1, len(levels) + 1))
    assert sum(level.reached for level in levels) == level_for_xp(xp).number
    assert len(levels) >= max(MIN_LEVELS, level_for_xp(xp).number + 3)


def test_its_picture_rises_within_its_frame() -> None:
    picture = plot_curve(level_steps(500))

    heights = [before.y - after.y for before, after in pairwise(picture.dots)]
    assert all(0 <= dot.x <= 320 and 0 <= dot.y <= 160 for dot in picture.dots)
    assert heights == sorted(heights)
    assert picture.line.count("L") == len(picture.dots)
