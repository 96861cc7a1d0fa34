"""Who may keep a place while others wait, and who is next."""

from __future__ import annotations

from typing import Any

from runners.places import Leave, Rules, Sitter, Waiter, in_turn, leaving

RULES = Rules(idle_s=1200, give_way_s=120, unused_s=5, notice_s=40)


def sitter(name: str = "a", idle_s: float = 0, **more: Any) -> Sitter:
    return Sitter(**{"name": name, "idle_s": idle_s, "workless_s": idle_s, "used": True} | more)


def test_while_nobody_waits_a_session_ends_when_it_was_idle_for_long() -> None:
    assert leaving([sitter(idle_s=200)], 0, RULES) == {"a": Leave(1000)}


def test_while_others_wait_it_ends_sooner_and_says_why() -> None:
    assert leaving([sitter(idle_s=20)], 1, RULES) == {"a": Leave(100, gives_way=True)}


def test_only_as_many_give_way_as_wait_the_longest_idle_first() -> None:
    leaves = leaving([sitter("a", 20), sitter("b", 100), sitter("c", 50)], 2, RULES)

    assert {name for name, leave in leaves.items() if leave.gives_way} == {"b", "c"}
    assert leaves["a"] == Leave(1180)


def test_who_has_something_to_lose_is_told_long_enough_before() -> None:
    assert leaving([sitter(idle_s=500)], 1, RULES)["a"].in_s == 40
    assert leaving([sitter(idle_s=500, told_s=30)], 1, RULES)["a"].in_s == 10
    assert leaving([sitter(idle_s=540, told_s=70)], 1, RULES)["a"].in_s == 0


def test_a_session_that_never_ran_anything_has_nothing_to_lose_and_goes_first() -> None:
    leaves = leaving([sitter("used", 110), sitter("unused", 6, used=False)], 1, RULES)

    assert leaves["unused"] == Leave(0, gives_way=True, can_be_kept=False)
    assert not leaves["used"].gives_way


def test_a_kept_session_stays_although_others_wait() -> None:
    assert leaving([sitter(idle_s=1, workless_s=600, told_s=100)], 1, RULES)["a"].in_s == 119


def test_but_nobody_holds_a_place_for_ever_by_keeping_it() -> None:
    at_the_end = sitter(idle_s=1, workless_s=1195, told_s=900)

    assert leaving([at_the_end], 1, RULES)["a"] == Leave(5, gives_way=True, can_be_kept=False)
    assert leaving([at_the_end], 0, RULES)["a"] == Leave(1199)


def test_nobody_ends_later_because_others_wait() -> None:
    rules = Rules(idle_s=60, give_way_s=120)

    assert leaving([sitter(idle_s=30)], 1, rules)["a"] == Leave(30)


def test_who_pressed_run_comes_before_who_only_looked() -> None:
    queue = [Waiter("looks", "x", has_run=False), Waiter("runs", "y", has_run=True)]

    assert in_turn(queue, {}) == ["runs", "looks"]


def test_who_has_fewest_places_comes_first_and_else_who_came_first() -> None:
    queue = [Waiter(name, owner, has_run=True) for name, owner in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c")]]

    assert in_turn(queue, {}) == ["a1", "b1", "c1", "a2"]
    assert in_turn(queue, {"b": 1}) == ["a1", "c1", "a2", "b1"]
