"""Text as a terminal would show it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exports.terminal import render_terminal_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("10%\r20%\r100%\n", "100%\n"),
        ("longer\rab\n", "abnger\n"),
        ("line\r\nnext\r\n", "line\nnext\n"),
        ("ends here\r", "ends here"),
        ("\x1b[32m1/2\x1b[0m\r\x1b[32m2/2\x1b[0m\n", "\x1b[32m2/2\x1b[0m\n"),
        ("ab\b\bcd\n", "cd\n"),
        ("1/938 [..]\b\b\b\b\b\b\b\b\b\b\r2/938 [=.]\n", "2/938 [=.]\n"),
        ("\b\bstart\n", "start\n"),
        ("one\r\btwo\n", "two\n"),
        ("\r\r\r\n", "\n"),
    ],
)
def test_returns_and_backspaces_are_carried_out(text: str, shown: str) -> None:
    assert render_terminal_text(text) == shown


@given(st.text(alphabet="ab\r\b\n\x1b[0m", max_size=60))
def test_what_is_settled_stays_as_it_is(text: str) -> None:
    once = render_terminal_text(text)

    assert "\r" not in once
    assert "\b" not in once
    assert render_terminal_text(once) == once
    assert once.count("\n") == text.count("\n")


def test_settling_a_progress_bar_four_times_as_long_takes_about_four_times_as_long() -> None:
    def cpu_s(length: int) -> float:
        text = "x" * length + "".join(f"\r{i}" for i in range(length)) + "\b" * 1000
        times = []
        for _ in range(3):
            began = time.process_time()
            render_terminal_text(text)
            times.append(time.process_time() - began)
        return min(times)

    assert cpu_s(120_000) < 10 * cpu_s(30_000), "quadratic would be 16 times"
