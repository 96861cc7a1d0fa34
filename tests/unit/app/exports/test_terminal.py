"""Text as a terminal leaves it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exports.terminal import settled


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
    assert settled(text) == shown


@given(st.text(alphabet="ab\r\b\n\x1b[0m", max_size=60))
def test_what_is_settled_stays_as_it_is(text: str) -> None:
    once = settled(text)

    assert "\r" not in once
    assert "\b" not in once
    assert settled(once) == once
    assert once.count("\n") == text.count("\n")


def test_a_long_progress_bar_is_settled_in_time() -> None:
    text = "x" * 200_000 + "".join(f"\r{i}" for i in range(200_000)) + "\b" * 1000

    began = time.perf_counter()
    settled(text)

    assert time.perf_counter() - began < 2
