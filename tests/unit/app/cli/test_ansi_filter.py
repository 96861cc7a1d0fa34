from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.ansi_filter import AnsiFilter, plain_text

_OBEYED = re.compile(r"\x1b(?!\[(?:[0-9;:]*m|[0-9]*[A-DGK]))|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_PIECES = st.sampled_from(
    [
        "\x1b",
        "[",
        "]",
        "52;c;",
        "P",
        "_",
        "\\",
        "\x07",
        "\x9d",
        "\x9b",
        "\x9c",
        "0;",
        "m",
        "c",
        "6n",
        "\n",
        "a",
        "\x1b]0;",
        "?25l",
    ]
)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m\n"),
        ("\r 10%\x1b[K\b\t.", "\r 10%\x1b[K\b\t."),
        ("two bars\x1b[A\x1b[2C", "two bars\x1b[A\x1b[2C"),
        ("\x1b]52;c;cm0gLXJmIH4=\x07after", "after"),
        ("\x1b]52;c;cm0gLXJmIH4=\x1b\\after", "after"),
        ("\x9d52;c;cm0gLXJmIH4=\x9cafter", "52;c;cm0gLXJmIH4=after"),
        ("\x1b]0;title\x07\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;never ended\nnext line", "\nnext line"),
        ('\x1bP$q"p\x1b\\\x1b_Gf=24;AAAA\x1b\\\x1b^x\x1b\\.', "."),
        ("\x1b[6n\x1b[c\x1b[21t\x1b[>4;2m\x1b[?1049h\x1b[2J\x1b[3J\x1b[H.", "."),
        ("\x1bc\x1b(0\x0e\x07\x05.", "."),
        ("\x1b[1\x07;31mx", "1;31mx"),
    ],
)
def test_text_colours_and_progress_bars_pass_and_orders_to_the_terminal_do_not(printed: str, shown: str) -> None:
    assert AnsiFilter().filter(printed) == shown
    screen = AnsiFilter()
    assert "".join(screen.filter(character) for character in printed) == shown, "also in pieces of one character"


@given(st.lists(_PIECES, max_size=30))
def test_nothing_that_a_terminal_obeys_comes_through_in_whatever_pieces(pieces: list[str]) -> None:
    screen = AnsiFilter()
    shown = "".join(map(screen.filter, pieces))
    assert not _OBEYED.search(shown), repr(shown)


def test_a_sequence_without_end_is_neither_kept_nor_shown_as_a_sequence() -> None:
    screen = AnsiFilter()
    shown = screen.filter("\x1b]52;c;") + "".join(screen.filter("A" * 1000) for _ in range(100))
    assert "\x1b" not in shown
    assert len(screen.filter("x")) == 1


def test_plain_text_has_no_color_and_shows_what_would_reorder_it() -> None:
    assert (
        plain_text("\x1b[31mred\x1b[0m\x1b]52;c;AAAA\x07 \u202edenrut\u202c \u2067")
        == "red]52;c;AAAA [U+202E]denrut[U+202C] [U+2067]"
    )
