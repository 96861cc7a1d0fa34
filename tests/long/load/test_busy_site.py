"""The benchmark of a busy site in miniature: everything that is asked is answered. Nothing is timed."""

from __future__ import annotations

from busy_site import Plan, measure_site


def test_readers_streams_and_runs_are_all_served() -> None:
    found, crowd = measure_site(Plan(readers=4, streams=20, runs=2, seconds=6))

    assert [each.wrong for each in found] == [[], [], []]
    assert all(len(each.page) == len(each.pieces) == len(each.peer) >= 4 for each in found)
    assert crowd.ended == 0, "a stream was refused, or did not stay open"
    assert crowd.events >= 20 + 2, "each stream begins with an event, and runs print"
