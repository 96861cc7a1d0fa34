"""Which sessions a full node evicts, which is next, and how long the others wait."""

from __future__ import annotations

import pytest

from runners.supervisor.scheduling import (
    BusySession,
    IdleSession,
    QueuedSession,
    choose_evictions,
    estimate_wait_s,
    queue_order,
)

GRACE_S = 5.0


def idle(name: str = "a", idle_s: float = 0, *, used: bool = True) -> IdleSession:
    return IdleSession(name, idle_s, used)


def test_while_nobody_waits_no_session_is_evicted() -> None:
    assert choose_evictions([idle(idle_s=1000), idle("b", used=False)], 0, GRACE_S) == []
    assert choose_evictions([idle(idle_s=1000)], -1, GRACE_S) == []


def test_a_session_whose_grace_period_is_over_is_evicted_as_soon_as_somebody_waits() -> None:
    assert choose_evictions([idle(idle_s=GRACE_S)], 1, GRACE_S) == ["a"]


def test_only_as_many_are_evicted_as_places_are_wanted_the_longest_idle_first() -> None:
    assert choose_evictions([idle("a", 20), idle("b", 100), idle("c", 50)], 2, GRACE_S) == ["b", "c"]


def test_a_learner_who_runs_cell_after_cell_keeps_the_session() -> None:
    assert choose_evictions([idle(idle_s=3)], 5, GRACE_S) == []


def test_a_session_that_never_ran_anything_has_nothing_to_lose_and_goes_first() -> None:
    assert choose_evictions([idle("used", 110), idle("unused", 0, used=False)], 1, GRACE_S) == ["unused"]


def test_two_learners_on_one_seat_both_get_their_runs_done() -> None:
    done = {"a": 0, "b": 0}
    holder, other, idle_s = "a", "b", 0.0
    for _ in range(100):  # seconds: a run takes no time, and each wants the next one at once
        if choose_evictions([idle(holder, idle_s)], 1, GRACE_S):
            holder, other, idle_s = other, holder, 0.0
            done[holder] += 1
        idle_s += 1

    assert min(done.values()) >= 8


def test_who_pressed_run_comes_before_who_only_looked() -> None:
    queue = [QueuedSession("looks", "x", has_run=False), QueuedSession("runs", "y", has_run=True)]

    assert queue_order(queue, {}) == ["runs", "looks"]


def test_who_has_fewest_places_comes_first_and_else_who_came_first() -> None:
    owners = [("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c")]
    queue = [QueuedSession(name, owner, has_run=True) for name, owner in owners]

    assert queue_order(queue, {}) == ["a1", "b1", "c1", "a2"]
    assert queue_order(queue, {"b": 1}) == ["a1", "c1", "a2", "b1"]


# --- the estimate -----------------------------------------------------------------------------------------------


def test_a_place_whose_session_is_idle_is_free_when_its_grace_period_is_over() -> None:
    assert estimate_wait_s(1, [idle(idle_s=2)], [], [], GRACE_S) == 3
    assert estimate_wait_s(1, [idle(idle_s=60)], [], [], GRACE_S) == 0
    assert estimate_wait_s(1, [idle(idle_s=0, used=False)], [], [], GRACE_S) == 0


def test_nothing_is_said_while_nothing_is_known() -> None:
    assert estimate_wait_s(1, [], [BusySession(10)], [], GRACE_S) is None
    assert estimate_wait_s(2, [idle(idle_s=60)], [BusySession(10)], [], GRACE_S) is None
    assert estimate_wait_s(1, [], [], [3.0], GRACE_S) is None  # every place is on loan to a Jupyter client


def test_a_busy_place_is_free_when_its_run_has_taken_as_long_as_recent_ones() -> None:
    assert estimate_wait_s(1, [], [BusySession(10)], [20, 30, 40], GRACE_S) == 20 + GRACE_S


def test_a_run_longer_than_all_recent_ones_is_taken_to_be_half_over() -> None:
    assert estimate_wait_s(1, [], [BusySession(100)], [20, 30], GRACE_S) == 100 + GRACE_S


def test_runs_that_wait_in_the_same_session_count() -> None:
    assert estimate_wait_s(1, [], [BusySession(0, queued=2)], [10], GRACE_S) == 30 + GRACE_S


def test_the_place_that_is_free_first_is_the_first_in_turns() -> None:
    busy = [BusySession(0), BusySession(8)]

    assert estimate_wait_s(1, [], busy, [10], GRACE_S) == 2 + GRACE_S
    assert estimate_wait_s(2, [], busy, [10], GRACE_S) == 10 + GRACE_S


def test_behind_more_people_than_places_each_of_them_takes_a_typical_run() -> None:
    assert estimate_wait_s(3, [], [BusySession(0)], [10], GRACE_S) == 3 * (10 + GRACE_S)


@pytest.mark.parametrize(("position", "expected"), [(1, 0), (2, 7)])
def test_a_place_that_is_being_freed_is_free(position: int, expected: float) -> None:
    assert estimate_wait_s(position, [], [BusySession(8)], [10], GRACE_S, free=1) == expected
