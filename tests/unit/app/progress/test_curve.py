"""The level curve goes on a little beyond where the learner is, and rises ever more steeply."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.progress.curve import FEWEST, curve, steps
from app.progress.levels import level_of, xp_for


@pytest.mark.parametrize("xp", [0, 99, 100, 101, 12_345, xp_for(40)])
def test_it_shows_what_is_reached_and_some_levels_beyond(xp: int) -> None:
    levels = steps(xp)

    assert [level.number for level in levels] == list(range(1, len(levels) + 1))
    assert sum(level.reached for level in levels) == level_of(xp).number
    assert len(levels) >= max(FEWEST, level_of(xp).number + 3)


def test_its_picture_rises_within_its_frame() -> None:
    picture = curve(steps(500))

    heights = [before.y - after.y for before, after in pairwise(picture.dots)]
    assert all(0 <= dot.x <= 320 and 0 <= dot.y <= 160 for dot in picture.dots)
    assert heights == sorted(heights)
    assert picture.line.count("L") == len(picture.dots)
