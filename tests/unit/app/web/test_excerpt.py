"""Words of a search, and where a text contains them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from app.web.excerpt import excerpt, query_words


def test_matches_are_marked_and_everything_else_is_escaped() -> None:
    assert excerpt("A <b>replica</b> & Replicas", ["replica"]) == Markup(
        "A &lt;b&gt;<mark>replica</mark>&lt;/b&gt; &amp; <mark>Replica</mark>s"
    )


def test_a_long_text_is_cut_around_the_first_match_at_a_word() -> None:
    shown = excerpt(f"{'lorem ipsum ' * 30}gradient {'dolor sit ' * 30}", ["gradient"])
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert "<mark>gradient</mark>" in shown
    assert shown[2:].lstrip().startswith(("lorem", "ipsum"))


def test_a_text_without_a_match_is_shown_from_its_beginning() -> None:
    assert excerpt("first\n  second", ["third"]) == "first second"


def test_words_are_distinct_and_bounded() -> None:
    assert query_words("  Loss LOSS\tscale ") == ["loss", "scale"]
    assert len(query_words(" ".join(f"w{n}" for n in range(50)))) == 8
    assert query_words("\0\ud800") == []


@given(st.text(), st.text())
def test_no_text_gets_markup_of_its_own(text: str, query: str) -> None:
    shown = excerpt(text, query_words(query))
    plain = shown.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in plain
    assert escape(Markup(plain).unescape()) == plain
