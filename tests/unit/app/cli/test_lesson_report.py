"""Reports for programs say what the text says, and nothing in a lesson can break their format."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from app.cli.lesson_report import CheckedCase, CheckReport, ReportFormat
from app.lessons.errors import LessonFileError

HOSTILE = "50% <b>&\x07\n::error::no"
REPORT = CheckReport(
    ["c/one"],
    [LessonFileError(Path("/c/one/lesson.md"), 3, HOSTILE)],
    [LessonFileError(Path("/c/a,b:c.md"), 1, "it is gone")],
    [
        CheckedCase("c/one", "fit", "ok", 1.25),
        CheckedCase("c/one", "plot", "error", 0.5, (LessonFileError(Path("/c/one/lesson.md"), 9, "it raised"),)),
    ],
)


def test_json_has_errors_warnings_and_each_case() -> None:
    read = json.loads(REPORT.written(ReportFormat.json))

    assert read["errors"] == [{"file": "/c/one/lesson.md", "line": 3, "text": HOSTILE}]
    assert [case["expected"] for case in read["cases"]] == [not case["errors"] for case in read["cases"]]
    assert read["unexpected_outcomes"] == sum(not case["expected"] for case in read["cases"]) > 0
    assert [(case["name"], case["outcome"], case["seconds"], len(case["errors"])) for case in read["cases"]] == [
        ("fit", "ok", 1.25, 0),
        ("plot", "error", 0.5, 1),
    ]
    assert (REPORT.failures, REPORT.failed) == (1, True)


def test_junit_has_a_suite_for_the_files_and_one_for_each_lesson() -> None:
    root = ElementTree.fromstring(REPORT.written(ReportFormat.junit))

    suites = [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root]
    assert suites == [("files", "1", "1"), ("c/one", "2", "1")]
    failures = [failure.text for failure in root.iter("failure")]
    assert failures == [
        "/c/one/lesson.md:3: 50% <b>&\ufffd\n::error::no",
        "/c/one/lesson.md:9: it raised",
    ]
    assert not list(ElementTree.fromstring(CheckReport(["c/one"], []).written(ReportFormat.junit)).iter("failure"))


def test_annotations_are_one_command_each() -> None:
    assert REPORT.written(ReportFormat.github).split("\n") == [
        "::error file=/c/one/lesson.md,line=3::50%25 <b>&\x07%0A::error::no",
        "::error file=/c/one/lesson.md,line=9::it raised",
        "::warning file=/c/a%2Cb%3Ac.md,line=1::it is gone",
    ]
