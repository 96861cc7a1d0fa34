"""A link of a lesson leads to a page, a heading, a file beside the lesson or the web, and nowhere else."""

from __future__ import annotations

import pytest

from app.lessons.links import InvalidLink, LinkTarget, parse_link


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("#a", LinkTarget("here", fragment="a")),
        ("lesson.md#a", LinkTarget("here", fragment="a")),
        ("./lesson.ko.md", LinkTarget("here")),
        ("#%EB%B2%94%EC%9C%84", LinkTarget("here", fragment="범위")),
        ("../two/lesson.md", LinkTarget("lesson", "two")),
        ("../two", LinkTarget("lesson", "two")),
        ("../../more/two/#a", LinkTarget("lesson", "two", course="more", fragment="a")),
        ("assets/a/b.png", LinkTarget("asset", "assets/a/b.png")),
        ("./assets/b.png", LinkTarget("asset", "assets/b.png")),
        ("mailto:a@example.org", LinkTarget("outside", "mailto:a@example.org")),
    ],
)
def test_a_link_names_its_target(href: str, target: LinkTarget) -> None:
    assert parse_link(href) == target


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//example.org/x",
        "/etc/passwd",
        "assets/../../secret",
        "assets/.hidden",
        "assets/%2e%2e/secret",
        "../../../etc/passwd",
        "../..",
        "two/lesson.md",
        "../two/other.md",
        "http://[bad",
        "",
    ],
)
def test_other_links_are_refused_or_stay_here(href: str) -> None:
    with pytest.raises(InvalidLink):
        parse_link(href)


def test_an_address_is_relative_to_the_page_so_it_keeps_the_language() -> None:
    assert LinkTarget("lesson", "two", fragment="범위").address("one") == "two#%EB%B2%94%EC%9C%84"
    assert LinkTarget("here").address("one") == "one"
    assert LinkTarget("asset", "assets/x.png").address("one") == "one/assets/x.png"
