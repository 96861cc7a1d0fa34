"""Notebooks and scripts that learners open: only code and text is taken, and nothing that is in them can do harm."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from app.playground.errors import (
    DataFileTooLarge,
    ForeignNotebook,
    InvalidDataFileName,
    InvalidNotebook,
    NothingToOpen,
)
from app.playground.notebook_file import MAX_DATA_BYTES, read_notebook_file
from app.runs.errors import TooManyScratchCells


def notebook(*cells: dict[str, Any], **more: Any) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)} | more)


def code(source: str | list[str], **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None} | more


def read(text: str, name: str = "a.ipynb") -> list[tuple[str, str]]:
    return [(cell.kind, cell.source) for cell in read_notebook_file(name, text)]


def test_code_and_text_are_taken_in_order_and_outputs_are_not() -> None:
    picture = {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<script>alert(1)</script>"}}
    text = notebook(
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "Words"], "attachments": {"a": {}}},
        code(["x = 1\n", "x"], outputs=[picture], execution_count=3),
        {"cell_type": "raw", "metadata": {}, "source": "raw"},
        code("  \n"),
    )

    assert read(text) == [("text", "# Title\nWords"), ("code", "x = 1\nx")]


def test_a_notebook_of_an_older_version_is_read_too() -> None:
    cells = [
        {"cell_type": "code", "input": "print 1", "language": "python", "outputs": [], "collapsed": False},
        {"cell_type": "heading", "source": "Results", "level": 2},
    ]
    text = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]})

    assert read(text) == [("code", "print 1"), ("text", "## Results")]


def test_a_heading_of_a_huge_level_takes_no_memory() -> None:
    cells = [{"cell_type": "heading", "source": "Results", "level": 10**8}]
    text = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]})
    tracemalloc.start()
    try:
        found, (_, peak) = read(text), tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == [("text", "###### Results")]
    assert peak < 50_000_000  # without a limit, 200,000,000


def test_a_script_is_split_where_it_says_so_and_keeps_its_titles() -> None:
    cells = read_notebook_file("a.py", "import os\n\n# %% Training\nx = 1\n\n# %% [markdown]\n# *Why?*\n")

    assert [(cell.kind, cell.title, cell.source) for cell in cells] == [
        ("code", "", "import os"),
        ("code", "Training", "x = 1"),
        ("text", "", "*Why?*"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "# %%\nx\n" * 201),
        ("a.ipynb", notebook(*[code("x")] * 201)),
        ("a.ipynb", notebook(*[code("")] * 20_000)),
        ("a.ipynb", json.dumps({"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "raw"}]}] * 2_000})),
        ("a.ipynb", json.dumps({"nbformat": 3, "worksheets": [{"cells": []}] * 20_000})),
    ],
)
def test_a_file_with_more_cells_than_a_page_can_have_is_refused_before_they_are_read(name: str, text: str) -> None:
    with pytest.raises(TooManyScratchCells, match="more than 200"):
        read(text, name)


def test_a_script_without_marks_is_one_cell() -> None:
    assert read("a = 1\n\n\ndef f():\n    return a\n", "a.PY") == [("code", "a = 1\n\n\ndef f():\n    return a")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "null",
        '"text"',
        "{}",
        "[" * 100_000,
        '{"a":' * 50_000,
        json.dumps({"nbformat": 4, "cells": 5}),
        json.dumps({"nbformat": 99, "cells": []}),
        json.dumps({"nbformat": "four", "cells": []}),
        notebook({"cell_type": "code"}, metadata=[]),
        notebook({"source": "x"}),
        notebook(code({"a": 1})),  # type: ignore[arg-type]
        notebook(code([1, 2])),  # type: ignore[list-item]
        notebook("cell"),  # type: ignore[arg-type]
    ],
)
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidNotebook, match="not a Jupyter notebook"):
        read(text)


def test_a_notebook_in_another_language_is_refused() -> None:
    with pytest.raises(ForeignNotebook, match="written in R"):
        read(notebook(code("x <- 1"), metadata={"kernelspec": {"name": "ir", "language": "R"}}))


@pytest.mark.parametrize(("text", "name"), [(notebook(), "a.ipynb"), (notebook(code("\n")), "a.ipynb"), ("\n", "a.py")])
def test_a_file_without_cells_is_refused(text: str, name: str) -> None:
    with pytest.raises(NothingToOpen):
        read(text, name)


def test_a_data_file_is_a_cell_that_writes_it() -> None:
    (cell,) = read_notebook_file("prices-2.CSV", "\ufeffrooms,price\r\n3,100\r\n")

    assert (cell.kind, cell.title, cell.source) == (
        "code",
        "prices-2.CSV",
        "%%writefile prices-2.CSV\nrooms,price\n3,100",
    )


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("../.bashrc.txt", "x", InvalidDataFileName),
        ("-a.txt", "x", InvalidDataFileName),
        ("a b.csv", "x", InvalidDataFileName),
        ("a\nimport os\n.csv", "x", InvalidDataFileName),
        ("$HOME.csv", "x", InvalidDataFileName),
        ("{x}.json", "x", InvalidDataFileName),
        (f"{'a' * 100}.csv", "x", InvalidDataFileName),
        ("a.csv", "\n\n", NothingToOpen),
        ("a.csv", "한" * (MAX_DATA_BYTES // 3 + 1), DataFileTooLarge),
    ],
)
def test_a_data_file_that_no_cell_can_write_is_refused(name: str, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_notebook_file(name, text)
