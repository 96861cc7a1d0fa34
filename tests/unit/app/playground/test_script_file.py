"""Scripts as cells: what editors and jupytext write, and files that would make jupytext slow or start a program."""

from __future__ import annotations

import resource

import pytest

from app.playground.script_file import read_script

LONGEST = 900_000
MARIMO = "{extension: .py, format_name: marimo}"


def read(text: str) -> list[tuple[str, str, str]]:
    """The cells that are not empty: kind, title, source."""
    return [(cell.kind, cell.title, cell.source.strip("\n")) for cell in read_script(text) if cell.source.strip()]


def test_a_cell_begins_at_its_mark_and_is_named_there() -> None:
    text = "import os\n\n# %% Training\nx = 1\n#%%\ny = 2\n  # %% Last {\"a\": 1}\nz = 3\n# %% tags=['a'] b=2\nw = 4\n"

    assert read(text) == [
        ("code", "", "import os"),
        ("code", "Training", "x = 1"),
        ("code", "", "y = 2"),
        ("code", "Last", "z = 3"),
        ("code", "", "w = 4"),
    ]


def test_text_is_in_comments_or_in_a_string() -> None:
    text = '# %% [markdown]\n# # Why?\n#\n# Because\n# %% Notes [md] id="a"\n"""\nA *string*\n"""\n# %% [raw]\n# kept\n'

    assert read(text) == [
        ("text", "", "# Why?\n\nBecause"),
        ("text", "", "A *string*"),
        ("code", "", "# kept"),
    ]


def test_magics_that_were_put_into_comments_run_again_and_other_comments_stay() -> None:
    text = (
        "# %%\n# %pip list\n# !ls\n#!ls\n# 50 % of it\nx = 1  # %time\n"
        "# %%\n# %%writefile a.txt\n# one\n#\n# two\n"
        "# %%\n# %%time\n# a comment\nx = 1\n"
    )

    assert [source for _, _, source in read(text)] == [
        "%pip list\n!ls\n#!ls\n# 50 % of it\nx = 1  # %time",
        "%%writefile a.txt\none\n\ntwo",
        "%%time\n# a comment\nx = 1",
    ]


def test_the_metadata_of_a_notebook_is_left_out_and_any_line_break_will_do() -> None:
    text = "\ufeff#!/usr/bin/env python\r\n# ---\r\n# jupyter:\r\n#   jupytext: {}\r\n# ---\r\n\r\n# %%\rx = 1\r\n"

    assert read(text) == [("code", "", "x = 1")]
    assert read("# ---\nx = 1\n# ---") == [("code", "", "# ---\nx = 1\n# ---")]


@pytest.mark.parametrize(
    "text",
    [
        "# -*- coding: latin-1 -*-\nx = 1",
        "# ---\n# jupyter: [\n# ---\nx = 1",
        f"# ---\n# jupyter:\n#   jupytext:\n#     text_representation: {MARIMO}\n# ---\nx = 1",
        "# %% tags=None\nx = 1",
        "# %% active=1\nx = 1",
    ],
)
def test_what_a_file_says_of_itself_neither_fails_nor_starts_another_program(text: str) -> None:
    assert [source.splitlines()[-1] for _, _, source in read(text)] == ["x = 1"]


@pytest.mark.parametrize(
    "text",
    [
        "# %%\nx\n" * (LONGEST // 7),
        "# %% " + "a=1" * (LONGEST // 3),
        "# %% " + "[" * LONGEST,
        "# ---\n" + "# a: [*a]\n" * (LONGEST // 10),
        "# %% [markdown]\n" + "# ```\n" * (LONGEST // 6),
        "# %% [markdown]\n" + '"' * LONGEST,
        " " * LONGEST + "#",
        "#" * LONGEST,
        "# %" * (LONGEST // 3),
        "\n" * LONGEST,
    ],
)
def test_the_time_grows_with_the_length_and_no_faster(text: str) -> None:
    before = resource.getrusage(resource.RUSAGE_THREAD)
    read_script(text)
    after = resource.getrusage(resource.RUSAGE_THREAD)
    assert after.ru_utime - before.ru_utime < 10  # where jupytext takes minutes to hours
