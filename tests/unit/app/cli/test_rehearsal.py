"""What counts as a failure of a cell, and where the author is sent to look."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.rehearsal import Performance, complaints, last_lines, line_of, printed_lines, runnable
from app.lessons.model import Tag
from runners.protocol import Display, Error, Frame, Notice, Outcome, Text
from tests.factories.lesson import CELL, rendered

THREE_LINES = CELL.replace("print(1)", "a = 1\nb = 2\nprint(c)")


def _went(outcome: str, *tags: Tag, error: Error | None = None) -> Performance:
    listed = f":tags: [{', '.join(tags)}]\n" if tags else ""
    cell = rendered(THREE_LINES.replace("\n\n", f"\n{listed}\n")).cells[0]
    return Performance(cell, Outcome(outcome), 1.0, error)


def _error(*frames: tuple[str, bool], **more: Any) -> Error:
    shown = [Frame(text=text, own=own) for text, own in frames]
    return Error(seq=1, at_ms=1, name="NameError", value="\x1b[31mno c\x1b[0m", frames=shown, **more)


@pytest.mark.parametrize(
    ("outcome", "tags", "words"),
    [
        ("ok", (), None),
        ("error", (Tag.raises_exception,), None),
        ("ok", (Tag.raises_exception,), "cell 'one' ended with 'ok', but its tag raises-exception says that it raises"),
        ("timeout", (Tag.raises_exception,), "cell 'one' ended with 'timeout', but its tag"),
        ("timeout", (), "cell 'one' ended with 'timeout'"),
        ("lost", (), "cell 'one' ended with 'lost'"),
        ("ok", (Tag.hide_input,), None),
    ],
)
def test_a_cell_ends_well_or_is_complained_about(outcome: str, tags: tuple[Tag, ...], words: str | None) -> None:
    said = complaints(_went(outcome, *tags))

    assert len(said) == (words is not None)
    assert all(sentence.startswith(words or "") for sentence in said)


def test_an_error_is_named_without_its_colours() -> None:
    assert complaints(_went("error", error=_error())) == ["cell 'one' raised NameError: no c"]


def test_a_cell_that_failed_is_not_asked_what_it_printed() -> None:
    cell = rendered(CELL.replace(":name: one", ":name: one\n:expect: [loss 1, loss 2]")).cells[0]

    assert complaints(Performance(cell, Outcome.timeout, 1.0, None)) == ["cell 'one' ended with 'timeout'"]
    assert complaints(Performance(cell, Outcome.ok, 1.0, None, ("loss 2",))) == [
        "cell 'one' did not print 'loss 1'; the closest line is 'loss 2'"
    ]


def test_the_lines_of_two_workers_are_not_mixed() -> None:
    pieces = [("worker 0", "loss "), ("worker 1", "loss 2\n"), ("worker 0", "1\r\n")]
    texts = [Text(seq=n, at_ms=n, stream="stdout", text=text, lane=lane) for n, (lane, text) in enumerate(pieces, 1)]
    result = Display(seq=4, at_ms=4, data={"text/plain": "[1,\n 2]", "text/html": "<b>"})
    notice = Notice(seq=5, at_ms=5, code="c", text="A word from Lockstep.")

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

    assert line_of(went) == went.cell.line + 2
    assert line_of(_went("error", error=_error(library))) == went.cell.line
    assert line_of(_went("timeout")) == went.cell.line


def test_the_end_of_the_traceback_is_shown() -> None:
    frames = [(f"\x1b[31mframe {i}\x1b[0m\n\n", True) for i in range(20)]

    assert last_lines(_went("error", error=_error(*frames))) == [f"frame {i}" for i in range(8, 20)]


def test_cells_that_are_only_to_be_read_are_not_run() -> None:
    skipped = CELL.replace(":name: one", ":name: two\n:tags: [skip-execution]")
    hidden = CELL.replace(":name: one", ":name: three\n:tags: [remove-cell]")

    assert [cell.name for cell in runnable(rendered(CELL + skipped + hidden))] == ["one", "three"]
