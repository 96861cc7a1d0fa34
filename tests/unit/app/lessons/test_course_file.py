"""A course's file is read with a line for every error."""

from __future__ import annotations

import pytest

from app.lessons.course_file import parse_course

GOOD = """\
title.en = "Course"
title.ko = "강좌"
summary.en = "All."

[[modules]]
slug = "first"
title.en = "First"
lessons = ["one", "two"]

[[modules]]
slug = "second"
title = "Second"
lessons = ["three"]
"""


def test_a_course_has_its_words_in_each_language_and_english_where_there_are_none() -> None:
    source, faults = parse_course(GOOD, "course")

    assert faults == []
    assert source is not None
    assert source.speaking("ko").title == "강좌"
    assert source.speaking("ko").summary == "All."
    assert source.speaking("zh").modules[1].title == "Second"
    assert source.speaking("en").lessons == ("one", "two", "three")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('title.en = "Course"', "title.en = Course", 1, "this is not TOML: Invalid value; write key ="),
        ('"three"]', '"three"', 14, "this is not TOML: "),
        ('title.en = "Course"\n', "", 1, "'title' has no English text; write title.en"),
        ('summary.en = "All."', "summary = 5", 1, "'summary' is missing or not a string; write summary.en"),
        ("title.ko", "title.kr", 2, "unknown language 'kr' of 'title'; use en, ko, zh"),
        ("summary.en", 'author = "me"\nsummary.en', 3, "unknown key 'author'; use one of title, summary, modules"),
        ('"three"', '"one"', 13, "the lesson 'one' is listed twice; keep one"),
        ('"three"', '"Three"', 13, "'Three' is not a valid slug; use lowercase letters, digits, and hyphens"),
        ('"three"', '"../up"', 13, "'../up' is not a valid slug"),
        ('["three"]', '"three"', 10, "'lessons' must be a list of folders; write lessons ="),
        ('title = "Second"\n', "", 10, "'title' is missing or not a string; write title.en"),
        ('slug = "second"\n', "", 10, "the module has no slug; write slug ="),
        ('slug = "second"', 'slug = "first"', 11, "the module 'first' is listed twice; keep one"),
    ],
)
def test_an_error_is_reported_with_its_line(old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    _, faults = parse_course(GOOD.replace(old, new), "course")

    assert any(fault.line == line and words in fault.text for fault in faults), faults


def test_a_course_without_modules_is_an_error() -> None:
    _, faults = parse_course('title = "x"\nsummary = "y"\n', "course")

    assert [fault.text for fault in faults] == ["the course has no modules; add a section that starts with [[modules]]"]
