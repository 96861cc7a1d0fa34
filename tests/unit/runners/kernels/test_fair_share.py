"""How much of the supervisor's time one session's messages may take."""

from __future__ import annotations

import pytest

from runners.kernels.fair_share import BURST_S, SHARE, FairShare


def test_ordinary_output_never_waits() -> None:
    share = FairShare(0.0)
    for second in range(100):
        share.spend(0.9 * SHARE)
        assert share.pause_s(second + 1.0) == 0


def test_5000_displays_at_once_never_wait() -> None:
    share = FairShare(0.0)
    for _ in range(5000):
        share.spend(100e-6)
        assert share.pause_s(0.0) == 0


def test_burst_and_share_together_stay_below_a_twentieth_of_40_seconds() -> None:
    assert BURST_S + 40 * SHARE < 0.05 * 40


def test_a_flood_gets_only_its_share_of_the_time() -> None:
    share, now, spent = FairShare(0.0), 0.0, 0.0
    while now < 100:
        share.spend(0.01)
        spent += 0.01
        now += 0.01 + share.pause_s(now + 0.01)

    assert (spent - BURST_S) / now == pytest.approx(SHARE, abs=0.01)


def test_a_message_that_took_long_is_paid_for_before_the_next() -> None:
    share = FairShare(0.0)
    share.spend(BURST_S + 0.03)

    assert share.pause_s(0.0) == pytest.approx(0.03 / SHARE)
    assert share.pause_s(0.03 / SHARE) == pytest.approx(0)


def test_nobody_saves_up_more_than_a_burst() -> None:
    share = FairShare(0.0)
    assert share.pause_s(1_000_000.0) == 0
    share.spend(2 * BURST_S)

    assert share.pause_s(1_000_000.0) == pytest.approx(BURST_S / SHARE)
