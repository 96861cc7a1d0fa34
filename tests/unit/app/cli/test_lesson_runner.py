"""What counts as a failure of a cell, and which line is shown to the author."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.lesson_runner import (
    CellResult,
    cell_errors,
    error_line,
    prediction_errors,
    runnable_cells,
    solved_code,
    traceback_tail,
)
from app.lessons.model import CellTag
from app.runs.printed_lines import printed_lines
from runners.wire.protocol import DisplayEvent, ErrorEvent, NoticeEvent, Outcome, TextEvent, TracebackFrame
from tests.factories.lesson_source import CELL, render_body

THREE_LINES = CELL.replace("print(1)", "a = 1\nb = 2\nprint(c)")


def _went(outcome: str, *tags: CellTag, error: ErrorEvent | None = None) -> CellResult:
    listed = f":tags: [{', '.join(tags)}]\n" if tags else ""
    cell = render_body(THREE_LINES.replace("\n\n", f"\n{listed}\n")).cells[0]
    return CellResult(cell, Outcome(outcome), 1.0, error)


def _error(*frames: tuple[str, bool], **more: Any) -> ErrorEvent:
    shown = [TracebackFrame(text=text, own=own) for text, own in frames]
    return ErrorEvent(seq=1, at_ms=1, name="NameError", value="\x1b[31mno c\x1b[0m", frames=shown, **more)


@pytest.mark.parametrize(
    ("outcome", "tags", "words"),
    [
        ("ok", (), None),
        ("error", (CellTag.raises_exception,), None),
        (
            "ok",
            (CellTag.raises_exception,),
            "cell 'one' ended with 'ok', but its tag raises-exception says that it raises",
        ),
        ("timeout", (CellTag.raises_exception,), "cell 'one' ended with 'timeout', but its tag"),
        ("timeout", (), "cell 'one' ended with 'timeout'"),
        ("lost", (), "cell 'one' ended with 'lost'"),
        ("ok", (CellTag.hide_input,), None),
    ],
)
def test_a_cell_ends_well_or_is_complained_about(outcome: str, tags: tuple[CellTag, ...], words: str | None) -> None:
    said = cell_errors(_went(outcome, *tags))

    assert len(said) == (words is not None)
    assert all(sentence.startswith(words or "") for sentence in said)


def test_an_error_is_named_without_its_colours() -> None:
    assert cell_errors(_went("error", error=_error())) == ["cell 'one' raised NameError: no c"]


def test_after_a_missing_module_the_author_reads_how_to_install_its_package() -> None:
    def said(value: str) -> list[str]:
        error = _error().model_copy(update={"name": "ModuleNotFoundError", "value": value})
        return cell_errors(_went("error", error=error))

    assert said("No module named 'sklearn'") == [
        "cell 'one' raised ModuleNotFoundError: No module named 'sklearn'; "
        "'make setup SCIENCE=1' installs it, see docs/operate/packages.md"
    ]
    assert said("No module named 'numpy.no'") == ["cell 'one' raised ModuleNotFoundError: No module named 'numpy.no'"]


def test_a_cell_that_failed_is_not_asked_what_it_printed() -> None:
    cell = render_body(CELL.replace(":name: one", ":name: one\n:expect: [loss 1, loss 2]")).cells[0]

    assert cell_errors(CellResult(cell, Outcome.timeout, 1.0, None)) == ["cell 'one' ended with 'timeout'"]
    assert cell_errors(CellResult(cell, Outcome.ok, 1.0, None, ("loss 2",))) == [
        "cell 'one' did not print 'loss 1'; the closest line is 'loss 2'"
    ]


def test_the_lines_of_two_workers_are_not_mixed() -> None:
    pieces = [("worker 0", "loss "), ("worker 1", "loss 2\n"), ("worker 0", "1\r\n")]
    texts = [
        TextEvent(seq=n, at_ms=n, stream="stdout", text=text, lane=lane) for n, (lane, text) in enumerate(pieces, 1)
    ]
    result = DisplayEvent(seq=4, at_ms=4, data={"text/plain": "[1,\n 2]", "text/html": "<b>"})
    notice = NoticeEvent(seq=5, at_ms=5, code="c", text="A word from Lockstep.")

    lines = printed_lines([*texts, result, notice, _error()])

    assert [line for line in lines if line] == [
        "loss 1",
        "loss 2",
        "[1,",
        " 2]",
        "A word from Lockstep.",
        "NameError: no c",
    ]


def test_the_line_is_the_one_the_learners_frame_points_to() -> None:
    own = ("Cell In[1], line 3\n      1 a = 1\n----> \x1b[32m3\x1b[0m print(c)", True)
    library = ("File lib.py\n---> 99 raise", False)
    went = _went("error", error=_error(own, library))

    assert error_line(went) == went.cell.line + 2
    assert error_line(_went("error", error=_error(library))) == went.cell.line
    assert error_line(_went("timeout")) == went.cell.line


def test_the_end_of_the_traceback_is_shown() -> None:
    frames = [(f"\x1b[31mframe {i}\x1b[0m\n\n", True) for i in range(20)]

    assert traceback_tail(_error(*frames)) == tuple(f"frame {i}" for i in range(8, 20))


def test_cells_that_are_only_to_be_read_are_not_run() -> None:
    skipped = CELL.replace(":name: one", ":name: two\n:tags: [skip-execution]")
    hidden = CELL.replace(":name: one", ":name: three\n:tags: [remove-cell]")

    assert [cell.name for cell in runnable_cells(render_body(CELL + skipped + hidden))] == ["one", "three"]


@pytest.mark.parametrize(
    ("lines", "missing"),
    [(("so it prints 7.5 s",), False), (("it prints -1e3",), False), (("it prints nothing", "7"), True), ((), True)],
)
def test_a_cell_that_answers_a_prediction_has_to_print_the_number(lines: tuple[str, ...], missing: bool) -> None:
    question = "```{predict} How long?\n:name: time\n:cell: one\n:from: 'it prints {number}'\n```\n\n"
    lesson = render_body(question + CELL)
    wanted = (
        "cell 'one' did not print 'it prints {number}', which the prediction 'time' is answered from;"
        " print it, or correct 'from'"
    )

    assert prediction_errors(lesson, CellResult(lesson.cells[0], Outcome.ok, 1.0, None, lines)) == [wanted] * missing
    assert prediction_errors(lesson, CellResult(lesson.cells[0], Outcome.error, 1.0, None, lines)) == []


@pytest.mark.parametrize(("raised", "named"), [("UnavailableError: a peer has ended", True), ("NameError: x", False)])
def test_a_cell_that_raises_what_was_predicted_has_to_name_its_error(raised: str, named: bool) -> None:
    question = "```{predict} How many?\n:name: lost\n:cell: one\n:answer: 1\n```\n\n"
    cell = CELL.replace(":name: one", ":name: one\n:tags: [raises-exception]\n:expect: UnavailableError")
    lesson = render_body(question + cell)
    result = CellResult(lesson.cells[0], Outcome.error, 1.0, _error(), error_lines=(raised,))

    said = prediction_errors(lesson, result)

    assert said == [] if named else "prediction 'lost'; add NameError to 'expect'" in said[0]


def test_an_exercise_runs_as_its_author_solved_it() -> None:
    code = "### BEGIN SOLUTION\n#: x = ...\nx = 1\n### END SOLUTION"
    exercise = CELL.replace("print(1)", code).replace("\n\n", "\n:tags: [exercise]\n\n")

    cell = render_body(exercise).cells[0]
    assert (solved_code(cell), cell.code) == ("x = 1", "x = ...")
    assert error_line(CellResult(cell, Outcome.error, 1.0, _error(("----> 1 x", True)))) == cell.line
