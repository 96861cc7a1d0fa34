"""Users' text, as it is stored and shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.user_text import (
    MAX_COMBINING_MARKS,
    TextEmpty,
    TextInvalid,
    TextTooLong,
    clean_text,
    code_spans,
    escape_bidi_controls,
    redisplayed_text,
)

MOST = 10_000


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "a\udfffb"])
def test_what_no_database_takes_is_refused(text: str) -> None:
    with pytest.raises(TextInvalid):
        clean_text(text, MOST)


@pytest.mark.parametrize(
    "text", ["", " \n\t ", "\u200b\u200d", "\u202e\u2066", "\u0301\u0301", "\ufeff", "\u3000", "\u3164\u2800"]
)
def test_nothing_to_see_is_nothing_written(text: str) -> None:
    with pytest.raises(TextEmpty):
        clean_text(text, MOST)


def test_so_many_characters_are_possible_and_one_more_is_not() -> None:
    assert len(clean_text("가" * MOST, MOST)) == MOST
    with pytest.raises(TextTooLong):
        clean_text("가" * (MOST + 1), MOST)


def test_line_ends_of_a_browser_count_once() -> None:
    assert clean_text("\r\n".join("a" for _ in range(5000)), MOST) == "\n".join("a" for _ in range(5000))


def test_the_first_line_keeps_its_indentation() -> None:
    assert clean_text("\n    code\n", MOST) == "    code"


def test_marks_are_stacked_only_so_high() -> None:
    assert clean_text("z" + "\u0335" * 500 + "y", MOST) == "z" + "\u0335" * MAX_COMBINING_MARKS + "y"


@pytest.mark.parametrize("text", ["Việt Nam", "שָׁלוֹם", "ที่นี่", "नमस्ते", "한국어", "👩‍👩‍👧", "e\u0301"])
def test_scripts_that_need_marks_keep_them(text: str) -> None:
    assert clean_text(text, MOST) == unicodedata.normalize("NFC", text)


def test_control_characters_vanish() -> None:
    assert clean_text("a\x07\x1b[31mb\x7f\u2028c", MOST) == "a[31mbc"


def test_turns_are_written_out() -> None:
    assert escape_bidi_controls("a\u202eb\u2069") == "a[U+202E]b[U+2069]"


def test_what_could_not_be_taken_can_be_shown_again() -> None:
    assert redisplayed_text("한\0\ud800") == "한\ufffd?"


@given(st.text(max_size=300))
def test_what_is_tidy_stays_as_it_is(text: str) -> None:
    try:
        once = clean_text(text, MOST)
    except (TextEmpty, TextInvalid, TextTooLong):
        return
    assert clean_text(once, MOST) == once


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("call `fit` or `a < b`", "call <code>fit</code> or <code>a &lt; b</code>"),
        ("<b>`<script>`", "&lt;b&gt;<code>&lt;script&gt;</code>"),
        ("one ` alone", "one ` alone"),
        ("an empty ``", "an empty ``"),
        ("`over\ntwo lines`", "`over\ntwo lines`"),
    ],
)
def test_text_between_backticks_is_code_and_stays_escaped(text: str, html: str) -> None:
    assert code_spans(text) == html
