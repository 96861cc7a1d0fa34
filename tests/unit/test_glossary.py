"""The glossary names what exists, and each word means one thing: public class names are unique in the project."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "develop" / "glossary.md").read_text()
ENTRIES = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([\w.]+)` \|$", GLOSSARY, re.MULTILINE)
TERMS = [(term.strip(), module) for terms, module in ENTRIES for term in terms.split(",")]


def source(module: str) -> str:
    """The module's own name and its text."""
    path = ROOT.joinpath(*module.split("."))
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    return f"{path.name}\n{text}"


def test_every_row_of_the_glossary_is_read() -> None:
    rows = [line for line in GLOSSARY.splitlines() if line.startswith("| ") and not line.startswith("| term ")]
    assert len(ENTRIES) == len(rows) > 40


@pytest.mark.parametrize(("term", "module"), TERMS, ids=[term for term, _ in TERMS])
def test_a_term_is_used_in_the_module_that_is_its_home(term: str, module: str) -> None:
    words = r"[\s_-]*".join(map(re.escape, re.split(r"[\s-]", term)))
    assert re.search(rf"(?<![a-z]){words}", source(module), re.IGNORECASE)


def test_a_term_is_explained_once() -> None:
    terms = [term for term, _ in TERMS]
    assert sorted(set(terms)) == sorted(terms)


def test_no_two_public_classes_have_the_same_name() -> None:
    homes = defaultdict(list)
    for package in ("app", "runners"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(str(path.relative_to(ROOT)))

    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
