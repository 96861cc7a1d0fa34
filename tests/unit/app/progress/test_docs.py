"""The pages on XP and on achievements match the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.comments.reactions import HELPFUL_XP
from app.progress.achievement_file import EVENT_KINDS, parse_achievements
from app.progress.events import CELL_XP, PREDICTION_XP, QUIZ_XP, STRATEGY_XP, TOPOLOGY_XP
from app.progress.levels import xp_for_level
from app.progress.requirements import COURSE_XP, LESSON_XP, MODULE_XP

_TEXT = Path("docs/learn/progress.md").read_text()
_ACHIEVEMENTS = Path("docs/teach/achievements.md").read_text()


@pytest.mark.parametrize(
    ("fact", "xp"),
    [
        ("a cell", CELL_XP),
        ("a prediction", PREDICTION_XP),
        ("a question", QUIZ_XP),
        ("a machine", TOPOLOGY_XP),
        ("a strategy", STRATEGY_XP),
        ("a lesson", LESSON_XP),
        ("a module", MODULE_XP),
        ("a course", COURSE_XP),
        ("a helpful comment", HELPFUL_XP),
    ],
)
def test_the_worth_of_each_fact_is_as_documented(fact: str, xp: int) -> None:
    [row] = [line for line in _TEXT.splitlines() if line.startswith(f"| {fact} |")]

    assert re.match(rf"{xp}\b", row.split("|")[3].strip()), row


def test_every_kind_is_documented() -> None:
    first_columns = [line.split("|")[1] for line in _ACHIEVEMENTS.splitlines() if line.startswith("| `")]
    documented = {kind for column in first_columns for kind in re.findall(r"`([a-z]+)`", column)}

    assert set(EVENT_KINDS) <= documented


def test_the_levels_are_as_documented() -> None:
    rows = [line.split("|")[2:-1] for line in _TEXT.splitlines() if re.match(r"\| (level|starts at) \|", line)]
    levels, sums = ([int(cell.replace(",", "")) for cell in row] for row in rows)

    assert [xp_for_level(level) for level in levels] == sums


def test_the_example_can_be_read() -> None:
    [example] = re.findall(r"```toml\n(.*?)```", _ACHIEVEMENTS, re.DOTALL)

    rules, faults = parse_achievements(example)

    assert faults == []
    assert rules is not None
    assert len(rules) == 1
