"""What follows from facts: lessons, modules, courses and achievements, in whatever order the facts arrive."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.progress.achievement_file import AchievementProgress
from app.progress.events import LearningEvent
from app.progress.requirements import (
    COURSE_XP,
    LESSON_XP,
    MODULE_XP,
    UNJUDGED_XP,
    LearnerEvents,
    LessonTask,
    Requirements,
    achievement_progress,
    derive_events,
)
from tests.factories.progress import EVERYTHING, POSSIBLE, small_requirements

_THEN = datetime(2026, 11, 21, tzinfo=UTC)
_TERMS = small_requirements()


def _after(facts: list[LearningEvent], terms: Requirements = _TERMS, *, at_once: bool = True) -> LearnerEvents:
    known = LearnerEvents()
    for number, fact in enumerate(facts):
        known.add(fact, _THEN + timedelta(minutes=number))
        if not at_once:
            derive_events(known, terms, _THEN)
    derive_events(known, terms, _THEN)
    return known


def _all(known: LearnerEvents) -> set[tuple[str, str]]:
    return {(kind, subject) for kind, subjects in known.by_kind.items() for subject in subjects}


@given(st.permutations(POSSIBLE), st.booleans())
def test_whoever_has_done_it_all_has_it_all_in_whatever_order(facts: list[LearningEvent], at_once: bool) -> None:
    known = _after(facts, at_once=at_once)

    assert known.xp == EVERYTHING
    assert len(known.by_kind["achievement"]) == 8


@given(st.lists(st.sampled_from(POSSIBLE)), st.lists(st.sampled_from(POSSIBLE)))
def test_more_facts_never_take_anything_away(facts: list[LearningEvent], more: list[LearningEvent]) -> None:
    assert _all(_after(facts)) <= _all(_after(facts + more))


def test_a_lesson_needs_its_cells_and_its_end() -> None:
    cells = [LearningEvent("cell", "c/a#1", 10), LearningEvent("cell", "c/a#2", 10)]

    assert "c/a" not in _after(cells).by_kind["lesson"]
    assert "c/a" not in _after([cells[0], LearningEvent("read", "c/a")]).by_kind["lesson"]
    done = _after([*cells, LearningEvent("read", "c/a")])
    assert "c/a" in done.by_kind["lesson"]
    assert done.completed_at("c/a", _TERMS) == _THEN + timedelta(minutes=2)


def test_a_lesson_without_cells_is_completed_by_its_end_and_worth_nothing() -> None:
    known = _after([LearningEvent("read", "c/d")])

    assert "c/d" in known.by_kind["lesson"]
    assert known.xp == UNJUDGED_XP, "only the module of that one lesson"


def test_only_a_judged_exercise_makes_a_lesson_a_module_and_a_course_worth_more() -> None:
    done = [LearningEvent("cell", "c/a#1"), LearningEvent("cell", "c/a#2"), LearningEvent("read", "c/a")]
    done += [LearningEvent("cell", "c/b#1"), LearningEvent("read", "c/b"), LearningEvent("read", "c/d")]
    judged = replace(_TERMS, rules=(), tasks={"c/a": frozenset({LessonTask("exercise", "c/a#2")})})

    assert _after(done, replace(_TERMS, rules=())).xp == 5 * UNJUDGED_XP
    assert _after([*done, LearningEvent("exercise", "c/a#2")], judged).xp == (
        LESSON_XP + MODULE_XP + COURSE_XP + 2 * UNJUDGED_XP
    ), "c/b and the other module have no exercise"


def test_what_was_completed_stays_when_the_lesson_grows() -> None:
    done = _after([LearningEvent("cell", "c/b#1", 10), LearningEvent("read", "c/b")])
    grown = replace(_TERMS, cells={**_TERMS.cells, "c/b": frozenset({"c/b#1", "c/b#new"})})
    derive_events(done, grown, _THEN)

    assert "c/b" in done.by_kind["lesson"]


def test_a_lesson_that_cannot_be_read_is_not_completed() -> None:
    broken = replace(_TERMS, cells={})

    assert "c/d" not in _after([LearningEvent("read", "c/d")], broken).by_kind["lesson"]


def test_the_progress_toward_each_achievement_is_shown() -> None:
    facts = [
        LearningEvent("cell", "c/a#1", 10),
        LearningEvent("strategy", "TPUStrategy", 15),
        LearningEvent("day", "2026-11-16"),
    ]
    known = _after([*facts, LearningEvent("cell", "c/b#1", 10), LearningEvent("read", "c/b")])
    way = {rule.id: achievement_progress(rule, known, _TERMS) for rule in _TERMS.rules}

    assert way["first"].done
    assert (way["three"], way["both"], way["module"]) == (
        AchievementProgress(2, 3),
        AchievementProgress(1, 2),
        AchievementProgress(1, 2),
    )
    assert (way["course"], way["week"], way["level"]) == (
        AchievementProgress(1, 4),
        AchievementProgress(0, 1),
        AchievementProgress(0, 2),
    )


def test_a_module_that_has_grown_since_stays_done() -> None:
    known = _after(list(POSSIBLE))
    course = _TERMS.courses["c"]
    more = replace(course, modules={**course.modules, "c/one": ("c/a", "c/b", "c/new")})
    grown = replace(_TERMS, courses={"c": more})

    assert achievement_progress(next(rule for rule in grown.rules if rule.id == "module"), known, grown).done
