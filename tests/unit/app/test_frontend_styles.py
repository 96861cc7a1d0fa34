"""Style sheets: what a browser has to compute again when a page changes."""

from __future__ import annotations

import re
from pathlib import Path

import app

FOLDER = Path(app.__file__).parent
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ANY_SIBLING = re.compile(r"[+~]\s*(?:\*|\[|:(?!is\(|where\())")
"""A sibling of any kind: ``* + *``, or ``* + :hover``, but not ``* + h2`` or ``* + :is(h2, h3)``."""


def test_no_selector_makes_every_insertion_restyle_all_that_is_beside_it() -> None:
    """For ``* + *``, Chromium computes the styles of the whole page whenever htmx puts something in, even elsewhere.

    ``> :where(:not(:first-child))`` selects the same elements with the same specificity.
    """
    sheets = [FOLDER / "main.css", *FOLDER.glob("*/frontend/*.css")]
    assert len(sheets) > 10
    found = [
        f"{sheet.relative_to(FOLDER)}: {line.strip()}"
        for sheet in sheets
        for line in COMMENT.sub("", sheet.read_text()).splitlines()
        if line.rstrip().endswith(("{", ",")) and ANY_SIBLING.search(line)
    ]
    assert found == []
