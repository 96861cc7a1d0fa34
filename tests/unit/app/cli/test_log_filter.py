from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.log_filter import LogFilter, copy_to_terminal

_OBEYED = re.compile(r"\x1b(?!\[[0-9;:]*m)|[^\S \n\t]|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
_PIECES = st.sampled_from(
    ["\x1b", "[", "]", "52;c;", "\x07", "\x9b", "31", "m", ";", "2J", "\r", "\b", "\n", "\t", "é", "\u202e"]
)


def _shown(*pieces: str) -> str:
    shown = LogFilter()
    return "".join(map(shown.filter, pieces)) + shown.end()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a line\n\tand 한국어, 中文\n", "a line\n\tand 한국어, 中文\n"),
        ("\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m\n\x1b[0m"),
        ("\x1b]52;c;cm0=\x07", "\\x1b]52;c;cm0=\\x07"),
        ("\x1b[2J\x1b[1A\x1b[6n", "\\x1b[2J\\x1b[1A\\x1b[6n"),
        ("all is well\rit is not\b", "all is well\\rit is not\\x08"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eback", "\\u202eback"),
        ("at the end \x1b[3", "at the end \\x1b[3"),
    ],
)
def test_text_and_colors_pass_and_everything_else_is_escaped(written: str, shown: str) -> None:
    assert _shown(written) == shown


@given(st.lists(_PIECES, max_size=30))
def test_no_order_to_a_terminal_passes_in_whatever_pieces(pieces: list[str]) -> None:
    shown = _shown(*pieces)
    assert not _OBEYED.search(shown)
    assert shown == _shown("".join(pieces))


def test_it_copies_to_the_end_and_what_is_not_utf8_too() -> None:
    screen, terminal = os.pipe()
    writes = r"import os; [os.write(1, part) for part in (b'caf\xc3', b'\xa9 \xff\x1b', b'[32mgreen\n')]"
    with subprocess.Popen([sys.executable, "-c", writes], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout
        copy_to_terminal(process.stdout, terminal)
    os.close(terminal)
    with os.fdopen(screen, "rb") as shown:
        assert shown.read().decode() == "café \\xff\x1b[32mgreen\n\x1b[0m"


def test_a_terminal_that_has_gone_does_not_hold_up_the_writer() -> None:
    screen, terminal = os.pipe()
    os.close(screen)
    with subprocess.Popen(
        [sys.executable, "-c", "print('x' * 1_000_000)"], stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout
        copy_to_terminal(process.stdout, terminal)
        assert process.wait(20) == 0
    os.close(terminal)
