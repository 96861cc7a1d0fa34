"""The page about input has the figures of the modules, and names only modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.accounts import passwords, validation
from app.accounts.handles import HANDLE
from app.comments import editing, markdown, moderation
from app.feedback import service as feedback
from app.progress.reading_progress import MAX_READINGS
from app.web import body_limit, forms, http_protocol, user_text
from runners.wire.protocol import MAX_CODE_BYTES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "develop" / "input.md").read_text()
ROWS = {row.split(" | ")[0]: row for row in re.findall(r"^\| (\w.+) \|$", PAGE, re.MULTILINE)}


@pytest.mark.parametrize(
    ("row", "figures"),
    [
        ("request", (f"{http_protocol.MAX_HEADER_BYTES // 1024} KiB", body_limit.MAX_BODY_BYTES, forms._MAX_FIELDS)),
        ("any text", (user_text.MAX_COMBINING_MARKS,)),
        ("email address", (validation.MAX_EMAIL_LENGTH,)),
        ("name", (validation.MAX_NAME_LENGTH,)),
        ("new password", (passwords.MIN_LENGTH, passwords.MAX_LENGTH)),
        ("path to return to", (forms._MAX_PATH_LENGTH,)),
        ("code of a cell", (MAX_CODE_BYTES,)),
        (
            "comment",
            (editing.MAX_COMMENT_CHARACTERS, f"{markdown.MAX_HTML_BYTES // 1024} KiB", editing.MAX_EDITS),
        ),
        ("report of a comment, and its reason", (moderation.MAX_REASON_CHARACTERS,)),
        (
            "problem report; comment on *Was this helpful?*",
            (feedback.MAX_PROBLEM_LENGTH, feedback.MAX_COMMENT_LENGTH),
        ),
        ("reading progress", (MAX_READINGS,)),
    ],
)
def test_a_figure_is_that_of_its_module(row: str, figures: tuple[object, ...]) -> None:
    for figure in figures:
        text = f"{figure:,}" if isinstance(figure, int) else str(figure)
        assert re.search(rf"(?<![\d,]){re.escape(text)}(?![\d,])", ROWS[row]), (row, text)


def test_the_length_of_a_handle_is_that_of_its_module() -> None:
    shortest, longest = map(int, re.findall(r"(\d+) to (\d+) lowercase", ROWS["handle"])[0])
    assert [bool(HANDLE.fullmatch("a" * n)) for n in (shortest - 1, shortest, longest, longest + 1)] == [
        False,
        True,
        True,
        False,
    ]


def test_every_module_that_it_names_exists() -> None:
    assert [file for file in re.findall(r"`([\w/]+\.py)`", PAGE) if not (ROOT / file).exists()] == []
