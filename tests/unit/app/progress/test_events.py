"""What a run proves, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.progress.events import CompletedRun, LearningEvent, events_of_run, needs_first_run, needs_notices

_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
_SCALED = "tf.nn.compute_average_loss(x, global_batch_size=8)"
_RUN = CompletedRun(
    lesson="course/lesson",
    cell="cell",
    code="s = tf.distribute.MirroredStrategy()",
    lesson_code="s = tf.distribute.MirroredStrategy()",
    topology="gpu:8",
    keras=3,
    ok=True,
    ended=_NOON,
    duration_ms=100,
)


def _proved(here: datetime = _NOON, **changes: Any) -> dict[str, set[str]]:
    proved: dict[str, set[str]] = {}
    for fact in events_of_run(replace(_RUN, **changes), here):
        proved.setdefault(fact.kind, set()).add(fact.subject)
    return proved


def test_a_run_proves_its_cell_its_machine_and_its_strategy() -> None:
    assert _proved() == {
        "cell": {"course/lesson#cell"},
        "day": {"2026-11-21"},
        "hour": {"12"},
        "topology": {"gpu:8"},
        "machine": {"gpu"},
        "keras": {"3"},
        "strategy": {"MirroredStrategy"},
        "replicas": {"8"},
    }


def test_an_error_that_was_announced_proves_the_cell_and_the_day_only() -> None:
    assert set(_proved(ok=False, duration_ms=10**6)) == {"cell", "day", "hour"}


def test_without_a_strategy_nobody_knows_of_replicas() -> None:
    assert "replicas" not in _proved(code="print(1)", lesson_code="print(1)")


def test_a_cluster_tells_of_its_workers() -> None:
    proved = _proved(topology="ps:2+1", code="print(1)")

    assert (proved["machine"], proved["workers"], proved["cluster"]) == ({"ps"}, {"2"}, {"4"})


@pytest.mark.parametrize(
    ("notices", "survived"),
    [(["cluster-restarted"], True), (["member-restarted"], True), (["member-ended"], False), ([], False)],
)
def test_only_the_supervisor_tells_that_a_process_was_lost(notices: list[str], survived: bool) -> None:
    assert ("survived" in _proved(topology="workers:2", notices=notices)) is survived
    assert "survived" not in _proved(topology="workers:2", notices=notices, ok=False)


@pytest.mark.parametrize("hour", range(24))
def test_a_long_run_counts_at_night_by_the_learners_clock(hour: int) -> None:
    proved = _proved(here=_NOON.replace(hour=hour), duration_ms=120_000)

    assert proved["long"] == {"course/lesson#cell"}
    assert ("night" in proved) is (hour >= 22 or hour < 5)
    assert "night" not in _proved(here=_NOON.replace(hour=hour), duration_ms=119_999)


def test_the_hour_proves_nothing_while_the_learners_time_zone_is_unknown() -> None:
    run = replace(_RUN, duration_ms=120_000)

    known, unknown = ({e.kind for e in events_of_run(run, _NOON.replace(hour=5), is_local=x)} for x in (True, False))
    assert known - unknown == {"hour"}
    known, unknown = ({e.kind for e in events_of_run(run, _NOON.replace(hour=23), is_local=x)} for x in (True, False))
    assert known - unknown == {"hour", "night"}


def test_scaling_the_loss_at_the_first_try_needs_own_code_on_several_replicas() -> None:
    own: dict[str, Any] = {"code": _SCALED, "first": True}

    assert _proved(**own)["scaled"] == {"course/lesson#cell"}
    assert "scaled" not in _proved(**{**own, "first": False})
    assert "scaled" not in _proved(**{**own, "lesson_code": f"{_SCALED}  # the same"})
    assert "scaled" not in _proved(**{**own, "lesson_code": None})
    assert "scaled" not in _proved(**{**own, "topology": "gpu:1"})
    assert "scaled" not in _proved(**{**own, "ok": False})


def test_changed_code_is_ones_own() -> None:
    assert "own" not in _proved()
    assert _proved(code="print(2)")["own"] == {"course/lesson#cell"}
    assert "own" not in _proved(code="print(2)", lesson_code=None)


def test_what_costs_a_query_is_asked_for_only_where_it_matters() -> None:
    assert needs_notices("workers:2")
    assert not needs_notices("gpu:8")
    assert needs_first_run(_SCALED, "other = 1", "gpu:2")
    assert not needs_first_run("print(1)", "other = 1", "gpu:2")


def test_facts_are_known_by_kind_and_subject() -> None:
    runs = [events_of_run(replace(_RUN, ended=_NOON + timedelta(hours=n)), _NOON) for n in range(2)]

    assert runs[0] == runs[1]
    assert len({(fact.kind, fact.subject) for fact in runs[0]}) == len(runs[0])
    assert all(isinstance(fact, LearningEvent) and fact.xp >= 0 for fact in runs[0])
