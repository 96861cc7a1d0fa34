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
        ("summary.en", 'author = "me"\nsummary.en', 3, "unknown key 'author'; use one of title, summary, audience, "),
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


ABOUT = """\
title = "Course"
summary = "All: the audience, the outcomes."
audience = "For anyone."
prerequisites.en = [" Python ", "A browser"]
prerequisites.ko = ["Python", "브라우저"]

[outcomes]
en = ["build", "test"]
zh = []

[[modules]]
slug = "first"
title = "First"
"""


def test_a_course_says_who_it_is_for_what_they_need_and_will_be_able_to_do() -> None:
    source, faults = parse_course(ABOUT, "course")

    assert faults == []
    assert source is not None
    korean = source.speaking("ko")
    assert korean.audience == "For anyone."
    assert korean.prerequisites == ("Python", "브라우저")
    assert source.speaking("zh").prerequisites == ("Python", "A browser")
    assert source.speaking("zh").outcomes == ("build", "test")


def test_a_course_need_not_say_who_it_is_for() -> None:
    source, _ = parse_course(GOOD, "course")

    assert source is not None
    course = source.speaking("ko")
    assert (course.audience, course.prerequisites, course.outcomes) == ("", (), ())


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('audience = "For anyone."', "audience = 5", 3, "'audience' is missing or not a string; write audience.en ="),
        ('audience = "For anyone."', 'audience.ko = "모두"', 3, "'audience' has no English text; write audience.en ="),
        ('["Python", "브라우저"]', '"Python"', 4, "'prerequisites' must be a list of strings; write prerequisites.en"),
        ('" Python "', '" "', 4, "'prerequisites' must be a list of strings"),
        ("prerequisites.ko", "prerequisites.kr", 5, "unknown language 'kr' of 'prerequisites'; use en, ko, zh"),
        ('en = ["build", "test"]\nzh = []', 'zh = ["建"]', 7, "'outcomes' has no English list; write outcomes.en ="),
        ('en = ["build", "test"]', "en = []", 7, "'outcomes' has no English list"),
        ('en = ["build", "test"]', "en = [1]", 7, "'outcomes' must be a list of strings"),
    ],
)
def test_what_is_wrong_in_what_a_course_says_is_reported(old: str, new: str, line: int, words: str) -> None:
    assert old in ABOUT
    _, faults = parse_course(ABOUT.replace(old, new), "course")

    assert any(fault.blocks and fault.line == line and words in fault.text for fault in faults), faults


def test_a_list_that_is_shorter_in_another_language_is_a_warning() -> None:
    _, (fault,) = parse_course(ABOUT.replace(', "브라우저"', ""), "course")

    words = "the list 'prerequisites' has another length in 'ko', 1, than in English, 2; translate every entry"
    assert (fault.line, fault.text, fault.warning) == (5, words, True)


def test_a_course_without_modules_is_an_error() -> None:
    _, faults = parse_course('title = "x"\nsummary = "y"\n', "course")

    assert [fault.text for fault in faults] == ["the course has no modules; add a section that starts with [[modules]]"]
