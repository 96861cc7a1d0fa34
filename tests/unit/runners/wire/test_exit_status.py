"""How a script exits."""

from __future__ import annotations

from runners.wire.exit_status import is_clean_exit


def test_a_script_that_ends_itself_well_has_not_failed() -> None:
    assert is_clean_exit("SystemExit", "0")
    assert not is_clean_exit("SystemExit", "1")
    assert not is_clean_exit("ValueError", "")
