"""The hooks of pre-commit: the checks of ``make check``, with the tools of the checkout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
CHECKS: list[str] = re.findall(r"^checks := (.+)$", MAKEFILE, re.MULTILINE)[0].split()
ON_FILES = {"check-style": ["ruff check", "ruff format"], "check-frontend-style": ["biome check"]}
"""What looks at single files has those of the commit named, so that a hook calls the tool and not make."""


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_of_make_check_is_a_hook(check: str) -> None:
    entries = [hook["entry"] for repository in CONFIG["repos"] for hook in repository["hooks"]]
    for tool in ON_FILES.get(check, [f"make --no-print-directory {check}"]):
        assert any(re.search(rf"{tool}\b(?!-)", entry) for entry in entries), tool


def test_hooks_fetch_nothing() -> None:
    assert {repository["repo"] for repository in CONFIG["repos"]} == {"local"}
    assert {hook["language"] for repository in CONFIG["repos"] for hook in repository["hooks"]} == {"system"}
