"""How a script ends itself."""

from __future__ import annotations

from runners.ending import left_well


def test_a_script_that_ends_itself_well_has_not_failed() -> None:
    assert left_well("SystemExit", "0")
    assert not left_well("SystemExit", "1")
    assert not left_well("ValueError", "")
