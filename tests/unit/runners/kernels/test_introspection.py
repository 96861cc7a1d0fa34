"""What a kernel's reply to a question about code becomes, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest

from runners.kernels.introspection import to_introspection
from runners.wire.protocol import Introspection, IntrospectionRequest


def completed(code: str, **content: Any) -> Introspection:
    """The reply to a completion at the end of the code."""
    return to_introspection(IntrospectionRequest(kind="complete", code=code, cursor=len(code)), content)


def inspected(data: Any) -> str:
    """The text of the reply to an inspection."""
    asked = IntrospectionRequest(kind="inspect", code="tf", cursor=2)
    return to_introspection(asked, {"status": "ok", "data": data}).text


@pytest.mark.parametrize(
    ("start", "matches"), [(0, ["tf.dist", "tf.data"]), (2, [".dist", ".data"]), (3, ["dist", "data"])]
)
def test_matches_of_an_attribute_begin_after_the_dot(start: int, matches: list[str]) -> None:
    found = completed("tf.d", cursor_start=start, matches=matches)
    assert found.start == 3
    assert [match.text for match in found.matches] == ["dist", "data"]


def test_what_a_match_is_comes_from_the_metadata() -> None:
    types = [{"text": "fit", "type": "function"}, {"text": "x", "type": "<b>"}, {"text": 1, "type": "function"}, 7]
    found = completed("", cursor_start=0, matches=["fit", "x"], metadata={"_jupyter_types_experimental": types})
    assert [(match.text, match.kind) for match in found.matches] == [("fit", "function"), ("x", "")]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"matches": "abc", "cursor_start": 0},
        {"matches": ["a"], "cursor_start": -1},
        {"matches": ["a"], "cursor_start": 10**9},
        {"matches": ["a"], "cursor_start": True},
        {"matches": ["a"], "cursor_start": "0"},
        {"matches": [1, None, {}, "a\nb", "a\x1b[31m", "\u202ea", "\ud800", "", "x" * 1000], "cursor_start": 0},
    ],
)
def test_an_invalid_reply_offers_nothing(content: dict[str, Any]) -> None:
    assert completed("abc", **content).matches == ()


def test_at_most_500_matches_are_kept() -> None:
    assert len(completed("m", cursor_start=0, matches=[f"m{n}" for n in range(10_000)]).matches) == 500


@pytest.mark.parametrize("data", [None, [], "text", {"text/plain": 7}, {"text/html": "<b>x</b>"}])
def test_only_plain_text_documents_a_name(data: Any) -> None:
    assert inspected(data) == ""


def test_documentation_has_no_escape_codes_or_control_characters() -> None:
    assert inspected({"text/plain": "\x1b[31mSignature:\x1b[0m\tf(x)\r\n\x1b[38;5;28mDoc\0\u202e\x07 <b>\x1b"}) == (
        "Signature:      f(x)\nDoc␀ <b>"
    )
    long = inspected({"text/plain": "y" * 1_000_000})
    assert 20_000 <= len(long) < 20_100
