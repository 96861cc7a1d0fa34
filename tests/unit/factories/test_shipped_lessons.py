"""Which lessons the long tests run."""

from __future__ import annotations

import pytest

from tests.factories.shipped_lessons import VARIABLE, chosen_lessons, shipped_catalog


def test_without_a_choice_every_lesson_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert {lesson.slug for lesson in chosen_lessons()} == {lesson.slug for lesson in shipped_catalog().every()}


def test_one_lesson_on_each_kind_of_machine_runs_beside_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "each-machine dtensor")
    chosen = chosen_lessons()
    assert "dtensor" in {lesson.slug for lesson in chosen}
    others = [lesson.topology.partition(":")[0] for lesson in chosen if lesson.slug != "dtensor"]
    assert sorted(others) == sorted({lesson.topology.partition(":")[0] for lesson in shipped_catalog().every()})

    monkeypatch.setenv(VARIABLE, "dtensor")
    assert [lesson.slug for lesson in chosen_lessons()] == ["dtensor"]


def test_a_name_of_no_lesson_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "dtensor dtensro")
    with pytest.raises(ValueError, match="No lesson has the name dtensro; LOCKSTEP_TEST_LESSONS names it"):
        chosen_lessons()
