"""Whole lines with the names of their lanes."""

from __future__ import annotations

from app.exports.terminal import render_terminal_text
from app.runs.line_prefixes import MAX_LINE_LENGTH, LaneLineBuffer, prefix_lines


def test_each_line_has_the_name_of_its_lane() -> None:
    assert prefix_lines("worker 1", "a\nb") == "[worker 1] a\n[worker 1] b"
    assert prefix_lines(None, "a\nb") == "a\nb"


def test_a_line_is_given_out_once_it_is_whole() -> None:
    lines = LaneLineBuffer(render_terminal_text)

    assert lines.feed("worker 0", "stdout", "step ") == ""
    assert lines.feed("worker 1", "stdout", "one\ntwo") == "[worker 1] one\n"
    assert lines.feed("worker 0", "stderr", "warning\n") == "[worker 0] warning\n"
    assert lines.feed("worker 0", "stdout", "1\nstep 2\n") == "[worker 0] step 1\n[worker 0] step 2\n"
    assert list(lines.rest("worker 0")) == []
    assert list(lines.rest()) == [("worker 1", "stdout", "[worker 1] two\n")]
    assert list(lines.rest()) == []


def test_a_progress_bar_is_shown_as_it_was_left() -> None:
    lines = LaneLineBuffer(render_terminal_text)

    assert lines.feed("worker 0", "stdout", "10%\r50%") == ""
    assert lines.feed("worker 0", "stdout", "\r100%\n") == "[worker 0] 100%\n"


def test_what_never_ends_a_line_is_shown_in_time() -> None:
    lines = LaneLineBuffer(render_terminal_text)

    assert (
        lines.feed("worker 0", "stdout", "x" * (MAX_LINE_LENGTH + 1)) == f"[worker 0] {'x' * (MAX_LINE_LENGTH + 1)}\n"
    )
    assert list(lines.rest()) == []
