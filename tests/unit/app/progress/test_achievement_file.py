"""Achievements are read completely or not at all, and every error names its line and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.i18n import LANGUAGE_CODES
from app.lessons.catalog import Catalog
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.achievement_file import AchievementCondition, matches_any, parse_achievements
from app.progress.badges import HIDDEN_BADGE
from tests.factories.course import write_course
from tests.factories.shipped_lessons import shipped_catalog

_GOOD = """\
# a comment
[[achievements]]
id = "one"
title.en = "One"
description.en = "It is one."
needs = { kind = "cell" }

[[achievements]]
id = "two"
badge = "one"
xp = 30
hidden = true
title = "Two"
description.en = "It is two."
description.ko = "둘"
needs = [{ kind = "replicas", of = ["8", "1*"], count = 2 }, { module = "small/only" }, { streak = 3 }]
"""

_DRAWN = _GOOD.replace('badge = "one"', 'badge = "tpu"').replace('id = "one"', 'id = "course"')
"""The same with drawings that there are."""


def test_a_good_file_is_read_whole() -> None:
    rules, faults = parse_achievements(_GOOD)

    assert faults == []
    assert rules is not None
    one, two = rules
    assert (one.id, one.badge, one.xp, one.hidden, one.needs) == (
        "one",
        "one",
        0,
        False,
        (AchievementCondition(kind="cell"),),
    )
    assert (two.badge, two.xp, two.hidden, two.line) == ("one", 30, True, 8)
    assert two.title == {"en": "Two"}
    assert two.needs == (
        AchievementCondition(kind="replicas", of=("8", "1*"), count=2),
        AchievementCondition(module="small/only"),
        AchievementCondition(streak=3),
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('id = "one"', "id = one", 3, "this is not TOML"),
        ('id = "one"', 'id = "One!"', 3, "'id' cannot be 'One!'"),
        ('id = "one"\n', "", 2, "'id' is missing"),
        ('id = "two"', 'id = "one"', 8, "defined twice, first on line 2"),
        ("xp = 30", "xp = -1", 11, "'xp' must be a whole number from 0"),
        ("xp = 30", "xp = true", 11, "'xp' must be a whole number from 0"),
        ("hidden = true", 'hidden = "yes"', 12, "'hidden' must be true or false"),
        ("hidden = true", "secret = true", 12, "unknown key 'secret'; use one of id"),
        ('title.en = "One"', 'title.en = "One"\ntitle.fr = "Un"', 5, "unknown language 'fr'"),
        ('title.en = "One"', "title = 1", 2, "'title' is missing or not a string"),
        ('title.en = "One"', 'title.en = " "', 4, "'title' has no English text"),
        ('needs = { kind = "cell" }', "needs = {}", 6, "a condition needs one of kind, module"),
        ('needs = { kind = "cell" }', "", 2, "'needs' is missing"),
        ('needs = { kind = "cell" }', "needs = []", 6, "'needs' is missing or empty"),
        ('{ kind = "cell" }', '{ kind = "sell" }', 6, "unknown kind 'sell'; use one of achievement, cell"),
        ('{ kind = "cell" }', '{ kind = "cell", count = 0 }', 6, "'count' must be a whole number from 1"),
        ('{ kind = "cell" }', '{ kind = "cell", all = ["a"], count = 2 }', 6, "'all' cannot be combined with"),
        ('{ kind = "cell" }', '{ kind = "cell", all = [] }', 6, "'all' is an empty list"),
        ('{ kind = "cell" }', '{ kind = "cell", of = [1] }', 6, "'of' must be a string or a list of strings"),
        ('{ kind = "cell" }', '{ kind = "cell", level = 3 }', 6, "a condition needs one of"),
        ('{ kind = "cell" }', "{ level = 3, count = 2 }", 6, "'count' cannot be combined with 'level'"),
        ('{ kind = "cell" }', '{ streak = "long" }', 6, "'streak' must be a whole number"),
        ('{ kind = "cell" }', '{ module = "one" }', 6, "'module' is not the name of a module; write module ="),
        ('{ kind = "cell" }', '{ course = "a/b" }', 6, "'course' is not the name of a course"),
        ("# a comment", "answer = 42", 1, "unknown key 'answer'; every achievement starts with [[achievements]]"),
    ],
)
def test_a_fault_says_its_line_and_what_to_write_instead(old: str, new: str, line: int, words: str) -> None:
    rules, faults = parse_achievements(_GOOD.replace(old, new, 1))

    assert rules is None
    assert [(fault.line, words in fault.text) for fault in faults] == [(line, True)], faults


_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=8), st.sampled_from(["cell", "a/b", "en", "first-run"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["kind", "of", "all", "count", "module", "course", "level", "en"]), inner),
    ),
    max_leaves=6,
)
_ENTRIES = st.dictionaries(st.sampled_from(["id", "badge", "xp", "hidden", "title", "description", "needs"]), _VALUES)


@given(st.lists(_ENTRIES, max_size=3))
def test_any_table_is_read_or_has_a_fault(entries: list[dict[str, object]]) -> None:
    text = "\n".join(f"[[achievements]]\n{_toml(entry)}" for entry in entries)

    rules, faults = parse_achievements(text)

    assert (rules is None) == bool(faults)
    assert all(1 <= fault.line <= text.count("\n") + 1 for fault in faults)


@given(st.text())
def test_any_text_is_read_or_has_a_fault(text: str) -> None:
    rules, faults = parse_achievements(text)

    assert (rules is None) == bool(faults)


def _toml(value: object, top: bool = True) -> str:
    if isinstance(value, dict):
        pairs = [f"{key} = {_toml(inner, False)}" for key, inner in value.items()]
        return "\n".join(pairs) if top else "{" + ", ".join(pairs) + "}"
    return json.dumps(value) if not isinstance(value, list) else f"[{', '.join(_toml(one, False) for one in value)}]"


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("*", "anything", True),
        ("gpu:*", "gpu:8", True),
        ("gpu:*", "cpu", False),
        ("a.c", "abc", False),
        ("*#cell", "course/lesson#cell", True),
        ("gpu:8", "gpu:80", False),
    ],
)
def test_a_star_matches_anything(pattern: str, subject: str, fits: bool) -> None:
    assert matches_any((pattern,), subject) is fits


def test_the_courses_own_achievements_have_no_fault_and_speak_every_language() -> None:
    rulebook = AchievementCatalog(shipped_catalog(), quiet=True)
    rulebook.reload()

    assert rulebook.mistakes == ()
    assert len(rulebook.rules) >= 24
    assert sum(rule.hidden for rule in rulebook.rules) >= 3
    badges = [rule.badge for rule in rulebook.rules]
    assert len(set(badges)) == len(badges), "each has a drawing of its own"
    assert HIDDEN_BADGE not in badges
    for rule in rulebook.rules:
        assert set(rule.title) == set(rule.description) == set(LANGUAGE_CODES), rule.id


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("small/only", "small/none", "there is no module 'none'; use one of only"),
        ("small/only", "none/only", "there is no course 'none'; use one of small"),
        ('kind = "cell"', 'kind = "cell", of = "small/first#none"', "there is no cell 'small/first#none'"),
        ('kind = "cell"', 'kind = "lesson", of = "small/none"', "there is no lesson 'small/none'"),
        ('kind = "cell"', 'kind = "strategy", all = ["None"]', "there is no strategy 'None'"),
    ],
)
def test_an_achievement_that_nobody_could_earn_is_reported_without_blocking_others(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    catalog = Catalog(write_course(tmp_path), quiet=True)
    catalog.reload()
    (tmp_path / "achievements.toml").write_text(_DRAWN.replace(old, new))
    rulebook = AchievementCatalog(catalog, quiet=True)

    rulebook.reload()

    assert len(rulebook.rules) == 2
    assert [words in mistake.text for mistake in rulebook.mistakes] == [True], rulebook.mistakes
    assert not rulebook.mistakes[0].blocks


def test_without_a_drawing_an_achievement_cannot_be_shown(tmp_path: Path) -> None:
    catalog = Catalog(write_course(tmp_path), quiet=True)
    catalog.reload()
    (tmp_path / "achievements.toml").write_text(_GOOD)
    rulebook = AchievementCatalog(catalog, quiet=True)

    rulebook.reload()

    assert rulebook.rules == ()
    assert [(m.line, m.blocks, m.text.partition(";")[0]) for m in rulebook.mistakes] == [
        (2, True, "there is no badge 'one'"),
        (8, True, "there is no badge 'one'"),
    ]


def test_a_fault_leaves_the_last_good_version_up_and_no_file_is_no_fault(tmp_path: Path) -> None:
    catalog = Catalog(write_course(tmp_path), quiet=True)
    catalog.reload()
    rulebook, file = AchievementCatalog(catalog, quiet=True), tmp_path / "achievements.toml"
    rulebook.reload()
    assert (rulebook.rules, rulebook.mistakes) == ((), ())

    file.write_text(_DRAWN)
    rulebook.reload()
    good = rulebook.rules
    file.write_bytes(b"\xff\xfe")
    rulebook.reload()

    assert len(good) == 2
    assert rulebook.rules == good
    assert len(rulebook.mistakes) == 1
    assert str(rulebook.mistakes[0]).startswith(f"{file}:1: ")
