"""Levels start at 100 XP, and each step is larger than the one before."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.progress.levels import MIN_LEVELS, level_for_xp, level_steps, xp_for_level


def test_the_first_levels_are_as_documented() -> None:
    assert [xp_for_level(level) for level in range(6)] == [0, 100, 250, 450, 700, 1000]


def test_each_step_is_larger_than_the_one_before() -> None:
    steps = [xp_for_level(level + 1) - xp_for_level(level) for level in range(200)]

    assert all(later > earlier for earlier, later in pairwise(steps))


@given(st.integers(0, 10**9))
def test_a_sum_lies_within_its_level(xp: int) -> None:
    level = level_for_xp(xp)

    assert level.begins == xp_for_level(level.number) <= xp < level.ends == xp_for_level(level.number + 1)
    assert level.within + level.missing == level.size


def test_nobody_is_below_level_zero() -> None:
    assert level_for_xp(-5).xp == level_for_xp(-5).number == 0


@pytest.mark.parametrize("xp", [0, 99, 100, 101, 12_345, xp_for_level(40)])
def test_the_list_shows_what_is_reached_and_some_levels_beyond(xp: int) -> None:
    levels = level_steps(xp)

    assert [level.number for level in levels] == list(range(1, len(levels) + 1))
    assert sum(level.reached for level in levels) == level_for_xp(xp).number
    assert len(levels) >= max(MIN_LEVELS, level_for_xp(xp).number + 3)
