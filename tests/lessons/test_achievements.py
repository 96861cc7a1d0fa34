"""The shipped achievements: without errors, in every language, each with its own drawing."""

from __future__ import annotations

import re

import pytest

from app.i18n import LANGUAGE_CODES
from app.progress.achievement_catalog import AchievementCatalog
from app.progress.achievement_file import Achievement
from app.progress.badges import HIDDEN_BADGE
from tests.factories.shipped_lessons import shipped_catalog

SCRIPTS = {"en": re.compile("[A-Za-z]"), "ko": re.compile("[가-힣]"), "zh": re.compile("[一-鿿]")}
MEANT = {
    "first-run": "cell",
    "eight-replicas": "replicas",
    "tpu": "machine",
    "cluster": "machine",
    "all-strategies": "strategy",
    "balance": "scaled",
    "survivor": "survived",
    "slow-clock": "long",
    "long-night": "night",
    "helpful": "helpful",
}
"""What earns some of them."""


@pytest.fixture(scope="module")
def book() -> AchievementCatalog:
    book = AchievementCatalog(shipped_catalog(), quiet=True)
    book.reload()
    return book


def test_none_has_a_mistake_or_cannot_be_earned(book: AchievementCatalog) -> None:
    assert book.mistakes == ()
    assert len(book.rules) >= 20


def test_each_has_a_drawing_of_its_own(book: AchievementCatalog) -> None:
    badges = [rule.badge for rule in book.rules]

    assert len(set(badges)) == len(badges)
    assert HIDDEN_BADGE not in badges


def test_some_are_secret_and_most_are_not(book: AchievementCatalog) -> None:
    assert 1 <= sum(rule.hidden for rule in book.rules) < len(book.rules) / 2


@pytest.mark.parametrize("code", LANGUAGE_CODES)
def test_each_speaks_every_language_in_its_own_script(book: AchievementCatalog, code: str) -> None:
    script = SCRIPTS[code]
    silent = [
        (rule.id, words.get(code))
        for rule in book.rules
        for words in (rule.title, rule.description)
        if not script.search(words.get(code, ""))
    ]
    assert silent == []


def test_what_they_are_for_is_what_earns_them(book: AchievementCatalog) -> None:
    kinds = {rule.id: {need.kind for need in rule.needs} for rule in book.rules}

    assert {name: kind for name, kind in MEANT.items() if kind not in kinds[name]} == {}
    for condition in ("module", "course", "streak", "level"):
        assert any(_asks(rule, condition) for rule in book.rules), condition


def _asks(rule: Achievement, condition: str) -> bool:
    return any(getattr(need, condition) for need in rule.needs)
