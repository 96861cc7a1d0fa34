"""What counts as a failure of a cell, and where the author is sent to look."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.rehearsal import Performance, complaint, last_lines, line_of, runnable
from app.lessons.model import Tag
from runners.protocol import Error, Frame, Outcome
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
    said = complaint(_went(outcome, *tags))

    assert said is None if words is None else said is not None and said.startswith(words)


def test_an_error_is_named_without_its_colours() -> None:
    assert complaint(_went("error", error=_error())) == "cell 'one' raised NameError: no c"


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
