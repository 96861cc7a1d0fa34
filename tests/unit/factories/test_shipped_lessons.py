"""Which lessons the long tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.lessons.catalog import Catalog
from tests.factories import shipped_lessons
from tests.factories.lesson_source import FRONT_MATTER, write_lesson, write_toml
from tests.factories.shipped_lessons import VARIABLE, chosen_lessons, shipped_catalog

LESSONS = list(shipped_catalog().with_drafts.every())


def test_without_a_choice_every_lesson_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert {lesson.slug for lesson in chosen_lessons()} == {lesson.slug for lesson in LESSONS}


def test_one_lesson_on_each_kind_of_machine_runs_beside_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "each-machine dtensor")
    chosen = chosen_lessons()
    assert "dtensor" in {lesson.slug for lesson in chosen}
    others = [lesson.topology.partition(":")[0] for lesson in chosen if lesson.slug != "dtensor"]
    assert sorted(others) == sorted({lesson.topology.partition(":")[0] for lesson in LESSONS})

    monkeypatch.setenv(VARIABLE, "dtensor")
    assert [lesson.slug for lesson in chosen_lessons()] == ["dtensor"]


def test_a_name_of_no_lesson_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "dtensor dtensro")
    with pytest.raises(ValueError, match="No lesson has the name dtensro; LOCKSTEP_TEST_LESSONS names it"):
        chosen_lessons()


def test_a_draft_can_be_named_because_ci_names_each_lesson_that_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lesson(write_toml(tmp_path, "new") / "new", "Words.\n", header=FRONT_MATTER.replace("published", "draft"))
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    monkeypatch.setattr(shipped_lessons, "shipped_catalog", lambda: catalog)
    monkeypatch.setenv(VARIABLE, "new")
    assert [lesson.slug for lesson in chosen_lessons()] == ["new"]
