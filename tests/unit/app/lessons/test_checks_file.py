"""Reading checks.py and its translations without running them."""

from __future__ import annotations

import pytest

import runners.checks
from app.lessons.checks_file import API, DeclaredName, parse_checks, parse_translations


def errors_in(source: str) -> list[tuple[int, str]]:
    return [(fault.line, fault.text) for fault in parse_checks(source).faults]


def declared(arguments: str) -> str:
    return f"@check({arguments})\ndef one(work): ..."


def test_names_xp_and_hints_are_read_from_the_decorators() -> None:
    source = """\
from runners.checks import check

LIMIT = 1 / 0  # would fail if anyone ran this


@check("divide", "It divides", xp=20, hints=["By what?", "By the "
    "global batch."])
def it_divides(work):
    assert False


@check(exercise="divide", name="It is fast")
def it_is_fast(work): ...


@checks.check("other", "It is other", hints=())
def it_is_other(work): ...
"""
    found = parse_checks(source)
    assert not found.faults
    assert found.of("divide") == (
        DeclaredName("divide", "It divides", 20, ("By what?", "By the global batch."), 6),
        DeclaredName("divide", "It is fast", 0, (), 12),
    )
    assert [check.exercise for check in found.checks] == ["divide", "divide", "other"]
    assert found.source == source


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ('NAME, "b"', "'exercise' of @check must be a literal"),
        ('"a", f"{b}"', "'name' of @check must be a literal"),
        ('"a", "b", xp=2 * 10', "'xp' of @check must be a literal"),
        ('"a", "b", 20', "@check has too many arguments"),
        ('"a", "b", points=20', "@check has no argument 'points'"),
        ('"a", "b", **MORE', "@check has no argument '**'"),
        ("*NAMES, xp=1", "'exercise' of @check must be a literal"),
        ('"a"', "a check needs a name"),
        ("", "@check needs the name of the exercise's cell"),
        ('"a", ""', "a check needs a name"),
        (f'"a", "{"b" * 121}"', "at most 120 characters"),
        ('"a", "b", xp=-1', "'xp' must be a whole number from 0 to 100"),
        ('"a", "b", xp=True', "'xp' must be a whole number from 0 to 100"),
        ('"a", "b", xp="20"', "'xp' must be a whole number from 0 to 100"),
        ('"a", "b", hints="By what?"', "'hints' must be a list"),
        ('"a", "b", hints=["x", 1]', "'hints' must be a list"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(arguments: str, error: str) -> None:
    found = errors_in("\n" + declared(arguments))
    assert error in found[0][1]
    assert found[0][0] == 2
    assert not parse_checks(declared(arguments)).checks


@pytest.mark.parametrize(
    ("source", "line", "error"),
    [
        ("def f(:\n", 1, "this is not Python"),
        ("x = 1\nreturn x\n", 2, "this is not Python"),
        ("\0", 1, "this is not Python"),
        ("@check\ndef f(work): ...", 1, "@check needs arguments"),
        ('@check("a", "b")\nasync def f(work): ...', 1, "@check belongs above a plain function"),
        ('@check("a", "b")\nclass F: ...', 1, "@check belongs above a plain function"),
        ('@check("a", "b")\n@check("a", "c")\ndef f(work): ...', 1, "a function can be one check"),
        ('if True:\n  @check("a", "b")\n  def f(work): ...', 2, "a check cannot be inside another block"),
        (declared('"a", "b"') + "\n\n" + declared('"a", "c"'), 5, "'one' is already defined on line 2"),
        (
            '@check("a", "b")\ndef f(w): ...\n@check("a", "b")\ndef g(w): ...',
            3,
            "already has a check named 'b' on line 1",
        ),
        (declared('"a", "b"').replace("work", ""), 2, "a check takes one argument; write def one(work)"),
        (declared('"a", "b"').replace("work", "work, x=1"), 2, "a check takes one argument; write def one(work)"),
        (declared('"a", "b"').replace("work", "*work"), 2, "a check takes one argument; write def one(work)"),
        ("import numpy, tensorflow as tf", 1, "checks cannot import 'tensorflow'; use NumPy, the standard library and"),
        ("def f():\n  from pandas.io import sql", 2, "checks cannot import 'pandas.io'"),
        ("from .lesson import shares", 1, "checks cannot import '.lesson'"),
        ("import runners.guest", 1, "checks cannot import 'runners.guest'"),
        (
            "from runners.checks import (\n  close,\n  closer)",
            3,
            "runners.checks has no 'closer'; it has CheckFailed, D",
        ),
        ("x" * 100_001, 1, "the limit is 100,000"),
        ("(" * 5000, 1, "this is not Python"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(source: str, line: int, error: str) -> None:
    found = errors_in(source)
    assert (found[0][0], error in found[0][1]) == (line, True), found


@pytest.mark.parametrize(
    "line",
    [
        "import numpy.linalg, math",
        "import runners.checks",
        "from runners.checks import *",
        "from runners.checks.in_process import InProcessWork",
        *(f"from runners.checks import {name}" for name in API),
    ],
)
def test_checks_can_import_numpy_the_standard_library_and_what_they_are_made_of(line: str) -> None:
    assert errors_in(line) == []


def test_the_names_that_checks_can_import_are_those_of_their_package() -> None:
    assert list(API) == runners.checks.__all__


SAYS = """
LATE = "It is late."

def answers(n):
    return n, {"Halved.": n / 2, "Doubled." if n else "Nothing.": 2 * n}

def complain(text, *, other):
    fail(text if other else LATE)
    fail(other)

@check("cell", "Adds up")
def adds_up(work):
    want, mistaken = answers(3)
    mistakes = {text: n for text, n in mistaken.items() if n != want}
    mistakes["Set back."] = 0
    close(work.call("f"), want, mistakes=mistakes | {"Joined.": 1})
    equal(work.value("x"), {"no sentence": 1}, mistakes=answers(4)[1])
    complain("By position.", other="By name.")
    print("not said")
"""


def test_sentences_are_found_that_checks_say_through_variables_and_helpers() -> None:
    said = parse_checks(SAYS).sentences
    assert set(said) == {
        *("Adds up", "It is late.", "Halved.", "Doubled.", "Nothing.", "Set back.", "Joined."),
        *("By position.", "By name."),
    }
    assert said["Halved."] == 5


def test_a_helper_that_calls_itself_says_what_it_says() -> None:
    source = "def again(text):\n    fail(text)\n    again(text)\nagain('Once.')"
    assert set(parse_checks(source).sentences) == {"Once."}


def test_translations_are_a_table_of_sentences() -> None:
    assert parse_translations('"It divides" = "나눕니다"\n') == ({"It divides": "나눕니다"}, [])


@pytest.mark.parametrize(
    ("source", "line"), [('"a" = "b"\n"c" = 1\n', 2), ('"a" = "b"\nc d\n', 2), ('"a" = ""\n', 1), ("[a]\nb = 1", 1)]
)
def test_a_broken_translation_is_an_error_with_its_line(source: str, line: int) -> None:
    assert [fault.line for fault in parse_translations(source)[1]] == [line]
