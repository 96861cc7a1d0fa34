"""Lines of lanes, whole and named."""

from __future__ import annotations

from app.exports.terminal import settled
from app.runs.lanes import LONGEST_LINE, LaneLines, in_lane


def test_each_line_has_the_name_of_its_lane() -> None:
    assert in_lane("worker 1", "a\nb") == "[worker 1] a\n[worker 1] b"
    assert in_lane(None, "a\nb") == "a\nb"


def test_a_line_is_given_out_once_it_is_whole() -> None:
    lines = LaneLines(settled)

    assert lines.feed("worker 0", "stdout", "step ") == ""
    assert lines.feed("worker 1", "stdout", "one\ntwo") == "[worker 1] one\n"
    assert lines.feed("worker 0", "stderr", "warning\n") == "[worker 0] warning\n"
    assert lines.feed("worker 0", "stdout", "1\nstep 2\n") == "[worker 0] step 1\n[worker 0] step 2\n"
    assert list(lines.rest("worker 0")) == []
    assert list(lines.rest()) == [("worker 1", "stdout", "[worker 1] two\n")]
    assert list(lines.rest()) == []


def test_a_progress_bar_is_shown_as_it_was_left() -> None:
    lines = LaneLines(settled)

    assert lines.feed("worker 0", "stdout", "10%\r50%") == ""
    assert lines.feed("worker 0", "stdout", "\r100%\n") == "[worker 0] 100%\n"


def test_what_never_ends_a_line_is_shown_in_time() -> None:
    lines = LaneLines(settled)

    assert lines.feed("worker 0", "stdout", "x" * (LONGEST_LINE + 1)) == f"[worker 0] {'x' * (LONGEST_LINE + 1)}\n"
    assert list(lines.rest()) == []
