"""The messages of a sandbox's PID 1."""

from __future__ import annotations

import json

import pytest

from runners.guest.pid1.init import printable


@pytest.mark.parametrize("words", [b'"', b"\\", b"\n", b"\0", b"\xff", "…".encode()])
def test_last_words_of_any_length_fit_in_a_packet(words: bytes) -> None:
    word = {"exited": -11, "kernel": 1, "trace": printable(words * (65_536 // len(words)))}
    assert len(json.dumps(word).encode()) < 1 << 16


def test_of_long_last_words_the_beginning_and_the_end_are_kept() -> None:
    text = printable(b"Fatal\n" + b"x" * 60_000 + b"\nthe cell")
    assert text.startswith("Fatal\n")
    assert text.endswith("\nthe cell")
    assert len(text) < 16_100
    assert printable("Fatal \x1b[31m\n…".encode()) == "Fatal ?[31m\n???"
