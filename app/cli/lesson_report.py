"""What ``lockstep lesson check`` found, as JSON, as JUnit's XML, or as annotations of GitHub's workflows. Pure."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree

from app.lessons.errors import LessonFileError

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ReportFormat(StrEnum):
    text = "text"
    json = "json"
    junit = "junit"
    github = "github"


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """A cell that ran, or a sample of an exercise that was judged."""

    lesson: str
    """``course/slug``."""
    name: str
    outcome: str
    duration_s: float
    errors: tuple[LessonFileError, ...] = ()
    traceback: tuple[str, ...] = ()
    """Its last lines, if an exception was raised."""

    def explained(self) -> str:
        """The errors, each as ``path:line: message``, and the traceback; empty if there are no errors."""
        if not self.errors:
            return ""
        told = [format_error(error) for error in self.errors]
        return "".join(f"{line}\n" for line in [*told, *(f"    {line}" for line in self.traceback)])


@dataclass(slots=True)
class CheckReport:
    lessons: list[str]
    """The keys of the lessons that were read."""
    mistakes: list[LessonFileError]
    """In their files."""
    warnings: list[LessonFileError] = field(default_factory=list)
    """They do not fail the check."""
    cases: list[CheckedCase] = field(default_factory=list)

    @property
    def failures(self) -> int:
        """The number of cells and samples with an unexpected outcome."""
        return sum(bool(case.errors) for case in self.cases)

    @property
    def failed(self) -> bool:
        return bool(self.mistakes or self.failures)

    def failures_again(self) -> str:
        """The unexpected outcomes in one place, if the reports of several lessons stand between them; else empty."""
        failed = [case for case in self.cases if case.errors]
        if not failed or len(self.lessons) == 1:
            return ""
        return "\n" + "".join(f"{case.lesson}  {case.name}\n{case.explained()}" for case in failed) + "\n"

    def written(self, form: ReportFormat) -> str:
        """The report in a format for programs."""
        if form is ReportFormat.json:
            return json.dumps(self._as_json(), ensure_ascii=False, indent=2)
        return self._as_junit() if form is ReportFormat.junit else "\n".join(self._annotations())

    def _as_json(self) -> Mapping[str, object]:
        return {
            "lessons": self.lessons,
            "errors": [_place(one) for one in self.mistakes],
            "warnings": [_place(one) for one in self.warnings],
            "unexpected_outcomes": self.failures,
            "cases": [
                {
                    "lesson": case.lesson,
                    "name": case.name,
                    "outcome": case.outcome,
                    "expected": not case.errors,
                    "seconds": round(case.duration_s, 3),
                    "errors": [_place(one) for one in case.errors],
                }
                for case in self.cases
            ],
        }

    def _as_junit(self) -> str:
        root = ElementTree.Element("testsuites", name="lockstep lesson check")
        files = _suite(root, "files", max(len(self.lessons), 1), len(self.mistakes))
        for mistake in self.mistakes:
            _case(files, "files", f"{shown_path(mistake.path)}:{mistake.line}", 0.0, [mistake])
        if not self.mistakes:
            _case(files, "files", "no errors", 0.0, [])
        if self.warnings:
            said = "\n".join(format_error(one) for one in self.warnings)
            ElementTree.SubElement(files, "system-out").text = _xml_text(said)
        for lesson in dict.fromkeys(case.lesson for case in self.cases):
            cases = [case for case in self.cases if case.lesson == lesson]
            suite = _suite(root, lesson, len(cases), sum(bool(case.errors) for case in cases))
            for case in cases:
                _case(suite, lesson.replace("/", "."), case.name, case.duration_s, case.errors)
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)

    def _annotations(self) -> Iterator[str]:
        for level, several in (
            ("error", [*self.mistakes, *(error for case in self.cases for error in case.errors)]),
            ("warning", self.warnings),
        ):
            for one in several:
                place = f"file={_property(shown_path(one.path))},line={one.line}"
                yield f"::{level} {place}::{_escaped(one.text)}"


def format_error(error: LessonFileError) -> str:
    """``path:line: message``, as editors and terminals make links of it."""
    return f"{shown_path(error.path)}:{error.line}: {error.message}"


def shown_path(path: Path) -> str:
    """The path relative to the working directory, if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _place(error: LessonFileError) -> Mapping[str, object]:
    return {"file": shown_path(error.path), "line": error.line, "text": error.text}


def _suite(root: ElementTree.Element, name: str, tests: int, failures: int) -> ElementTree.Element:
    return ElementTree.SubElement(root, "testsuite", name=name, tests=str(tests), failures=str(failures))


def _case(suite: ElementTree.Element, group: str, name: str, seconds: float, errors: Iterable[LessonFileError]) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=group, name=_xml_text(name), time=f"{seconds:.3f}")
    for error in errors:
        where = f"{shown_path(error.path)}:{error.line}: {error.text}"
        ElementTree.SubElement(case, "failure", message=_xml_text(error.text)).text = _xml_text(where)


def _xml_text(text: str) -> str:
    """The text without the characters that XML cannot have, even escaped."""
    return _NOT_XML.sub("\ufffd", text)


def _escaped(text: str) -> str:
    """As the body of a workflow command: nothing in it can begin another command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
