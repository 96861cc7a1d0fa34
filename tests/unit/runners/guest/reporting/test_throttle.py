"""How often things are reported, and how long they will still take."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.guest.reporting.throttle import Throttle, TimeEstimator


class Clock:
    """A clock that the test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.floats(0, 0.3), st.sampled_from("abc")), max_size=60))
def test_no_more_than_one_in_each_interval_and_always_the_last_of_each_kind(offers: list[tuple[float, str]]) -> None:
    clock, sent = Clock(), []
    throttle: Throttle[tuple[str, int]] = Throttle(0.1, lambda item: sent.append((clock.now, item)), clock)
    for n, (pause, kind) in enumerate(offers):
        clock.now += pause
        throttle.offer(kind, (kind, n))
    passed = list(sent)
    throttle.flush()

    kinds = {kind for _, kind in offers}
    for kind in kinds:
        times = [at for at, (of, _) in passed if of == kind]
        assert all(later - earlier >= 0.0999 for earlier, later in itertools.pairwise(times))
        last = max(n for n, (_, of) in enumerate(offers) if of == kind)
        assert [item for _, item in sent if item[0] == kind][-1] == (kind, last)
    assert len({item for _, item in sent}) == len(sent)


def test_two_kinds_share_the_rate() -> None:
    clock = Clock()
    sent: list[str] = []
    throttle: Throttle[str] = Throttle(0.1, sent.append, clock)
    for _ in range(1000):
        clock.now += 0.001
        throttle.offer("a", "a")
        throttle.offer("b", "b")
    assert 8 <= len(sent) <= 12
    assert set(sent) == {"a", "b"}


def test_the_first_item_is_left_out_of_the_estimate() -> None:
    pace = TimeEstimator()
    assert pace.left_s(0, 10, 0) is None
    assert pace.left_s(1, 10, 30) is None
    assert pace.left_s(2, 10, 31) == pytest.approx(8)
    assert pace.left_s(6, 10, 35) == pytest.approx(4)
    assert pace.left_s(10, 10, 39) == 0
    assert TimeEstimator().left_s(1, 1, 5) == 0


def test_without_a_total_nothing_can_be_told() -> None:
    pace = TimeEstimator()
    pace.left_s(1, None, 1)
    assert pace.left_s(2, None, 2) is None
