"""Text is split at the tags in it, whatever pieces it arrives in."""

from __future__ import annotations

import pytest

from runners.wire.replica_tags import TagSplitter, lane_name, replica_tag

NONCE = "0badcafe"


def test_text_without_marks_stays_as_it_is() -> None:
    assert TagSplitter(NONCE).feed("a\nb\x1e\x1f") == [(None, "a\nb\x1e\x1f")]


@pytest.mark.parametrize("size", [1, 2, 5, 13, 200])
def test_marked_text_comes_out_the_same_in_pieces_of_any_size(size: int) -> None:
    first, twelfth, end = replica_tag(NONCE, 0), replica_tag(NONCE, 12), replica_tag(NONCE, None)
    whole = f"before {first}zero\n{end}{twelfth}twelve\n{end}after"
    splitter = TagSplitter(NONCE)
    pieces = [piece for at in range(0, len(whole), size) for piece in splitter.feed(whole[at : at + size])]
    pieces += splitter.feed("", final=True)
    assert _joined(pieces) == [(None, "before "), (0, "zero\n"), (12, "twelve\n"), (None, "after")]


def test_half_a_mark_at_the_end_is_text_after_all() -> None:
    splitter = TagSplitter(NONCE)
    half = replica_tag(NONCE, 3)[:-2]
    assert splitter.feed(f"x{half}") == [(None, "x")]
    assert splitter.feed("", final=True) == [(None, half)]


@pytest.mark.parametrize(
    "forged", [replica_tag("1badcafe", 0), "\x1e0badcafe:1234\x1f", "\x1e0badcafe:x\x1f", "\x1e" * 50]
)
def test_what_only_looks_like_a_mark_is_text(forged: str) -> None:
    splitter = TagSplitter(NONCE)
    assert _joined([*splitter.feed(forged), *splitter.feed("", final=True)]) == [(None, forged)]


def test_a_lane_names_what_there_is() -> None:
    named = [lane_name(None, None), lane_name("worker 1", None), lane_name(None, 2), lane_name("worker 1", 0)]
    assert named == [None, "worker 1", "replica 2", "worker 1 · replica 0"]


def _joined(pieces: list[tuple[int | None, str]]) -> list[tuple[int | None, str]]:
    joined: list[tuple[int | None, str]] = []
    for replica, text in pieces:
        if joined and joined[-1][0] == replica:
            text = joined.pop()[1] + text
        joined.append((replica, text))
    return joined
