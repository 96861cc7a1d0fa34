"""Reading checks.py and its translations without running them."""

from __future__ import annotations

import pytest

from app.lessons.checks_file import DeclaredName, parse_checks, parse_translations


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
        ("x" * 100_001, 1, "the limit is 100,000"),
        ("(" * 5000, 1, "this is not Python"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(source: str, line: int, error: str) -> None:
    found = errors_in(source)
    assert (found[0][0], error in found[0][1]) == (line, True), found


def test_translations_are_a_table_of_sentences() -> None:
    assert parse_translations('"It divides" = "나눕니다"\n') == ({"It divides": "나눕니다"}, [])


@pytest.mark.parametrize(
    ("source", "line"), [('"a" = "b"\n"c" = 1\n', 2), ('"a" = "b"\nc d\n', 2), ('"a" = ""\n', 1), ("[a]\nb = 1", 1)]
)
def test_a_broken_translation_is_an_error_with_its_line(source: str, line: int) -> None:
    assert [fault.line for fault in parse_translations(source)[1]] == [line]
