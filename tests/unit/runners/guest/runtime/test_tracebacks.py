"""Long tracebacks lose their middle."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import pytest

from runners.guest.runtime import tracebacks
from runners.guest.runtime.tracebacks import cut_middle, cut_own_frames, shorten_long_tracebacks


def _fall(depth: int) -> None:
    if depth == 0:
        raise ValueError("bottom")
    _fall(depth - 1)


def _caught(depth: int) -> ValueError:
    try:
        _fall(depth)
    except ValueError as e:
        return e
    raise AssertionError


def test_a_long_traceback_keeps_its_beginning_and_its_end() -> None:
    error = _caught(200)
    assert cut_middle(error.__traceback__) == 202 - 30
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert len(names) == 30
    assert names[0] == "_caught"


def test_a_short_traceback_stays_as_it_is() -> None:
    error = _caught(10)
    assert cut_middle(error.__traceback__) == 0
    assert len(traceback.extract_tb(error.__traceback__)) == 12
    assert cut_middle(None) == 0


def test_the_formatter_says_what_is_left_out_of_every_error_in_the_chain() -> None:
    class Formatter:
        def structured_traceback(self, etype: Any, value: Any, tb: Any) -> list[str]:
            return traceback.format_exception(etype, value, tb)

    error = RuntimeError("outer")
    error.__cause__ = _caught(100)
    error.__cause__.__context__ = error  # a circle ends too
    formatter = Formatter()
    shorten_long_tracebacks(formatter)
    shown = "".join(formatter.structured_traceback(type(error), error, sys.exc_info()[2]))
    assert "(72 frames omitted from the middle of this traceback)" in shown


def test_frames_of_ours_are_left_out_of_the_middle_of_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "_OURS", __file__)
    error = _caught(10)
    cut_own_frames(error.__traceback__)
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)] == ["_caught", "_fall"]

    monkeypatch.setattr(tracebacks, "_OURS", "/elsewhere/")
    error = _caught(10)
    cut_own_frames(error.__traceback__)
    assert len(traceback.extract_tb(error.__traceback__)) == 12
    cut_own_frames(None)
