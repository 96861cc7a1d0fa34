"""The schemas accept what the parsers accept, and know the same keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft202012Validator, meta

from app.lessons.course_file import parse_course
from app.lessons.front_matter import parse_front_matter
from app.lessons.json_schema import course_schema, front_matter_schema
from tests.factories.shipped_lessons import LESSONS

COURSES = sorted(LESSONS.glob("*/course.toml"))
ENGLISH = sorted(LESSONS.glob("*/*/lesson.md"))
GOOD = {"title": "T", "summary": "S", "minutes": 5}


def _front_matter(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])


def test_shipped_files_follow_the_schemas() -> None:
    meta.validate(front_matter_schema())
    meta.validate(course_schema())
    for path in COURSES:
        Draft202012Validator(course_schema()).validate(tomllib.loads(path.read_text(encoding="utf-8")))
    for path in ENGLISH:
        Draft202012Validator(front_matter_schema()).validate(_front_matter(path))


@pytest.mark.parametrize("key", sorted(front_matter_schema()["properties"]))
def test_the_parser_knows_each_key_of_the_schema(key: str) -> None:
    _, faults = parse_front_matter(f"{key}: x\n", None)
    assert not [fault for fault in faults if "unknown key" in fault.text]


def test_the_schema_knows_each_key_of_the_parser() -> None:
    _, faults = parse_front_matter("unknown: x\n", None)
    (said,) = [fault.text for fault in faults if "unknown key" in fault.text]
    assert set(said.partition("use one of ")[2].split(", ")) <= set(front_matter_schema()["properties"])


def test_the_schema_of_a_course_knows_each_key_of_its_parser_and_no_other() -> None:
    _, faults = parse_course("unknown = 1\n", "course")
    (said,) = [fault.text for fault in faults if "unknown key" in fault.text]

    assert set(said.partition("use one of ")[2].split(", ")) == set(course_schema()["properties"])


@pytest.mark.parametrize(
    ("about", "valid"),
    [
        ({"outcomes": ["build"], "audience": "Anyone"}, True),
        ({"outcomes": {"en": ["build"], "ko": []}}, True),
        ({"outcomes": "build"}, False),
        ({"outcomes": {"ko": ["만들기"]}}, False),
        ({"prerequisites": {"en": []}}, False),
    ],
)
def test_the_schema_of_a_course_takes_a_list_or_one_for_each_language(about: dict[str, object], valid: bool) -> None:
    course = {"title": "T", "summary": "S", "modules": [{"slug": "one", "title": "One"}]}

    assert Draft202012Validator(course_schema()).is_valid(course | about) is valid


@pytest.mark.parametrize(
    "wrong", [{"minutes": 0}, {"status": "final"}, {"tags": ["One Tag"]}, {"keras": 4}, {"titel": "x"}, {"title": ""}]
)
def test_what_the_parser_refuses_is_marked_in_the_editor(wrong: dict[str, object]) -> None:
    validator = Draft202012Validator(front_matter_schema())

    assert validator.is_valid(GOOD)
    assert not validator.is_valid(GOOD | wrong)


@pytest.mark.parametrize(
    "front_matter", [{}, {"title": "T"}, GOOD | {"authors": ["Ada"], "date": "2026-11-26", "description": "Words"}]
)
def test_what_the_parser_takes_without_an_error_is_not_marked(front_matter: dict[str, object]) -> None:
    _, faults = parse_front_matter(yaml.safe_dump(front_matter), None)

    assert faults == []
    assert Draft202012Validator(front_matter_schema()).is_valid(front_matter)
