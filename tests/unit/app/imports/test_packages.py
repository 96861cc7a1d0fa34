"""Which packages an import and a check ask for."""

from __future__ import annotations

import tomllib
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from app.imports import packages
from runners.wire.supplied_modules import SUPPLIED_MODULES

ROOT = Path(__file__).parents[4]


def test_the_modules_of_the_extra_are_those_of_its_packages() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["science"]
    names = {Requirement(line).name for line in extra}
    assert {"sklearn" if name == "scikit-learn" else name for name in names} == packages.SCIENCE
    page = (ROOT / "docs" / "operate" / "packages.md").read_text().casefold()
    assert [name for name in names if name not in page] == []


def test_what_each_session_has_is_never_missing() -> None:
    assert not any(map(packages.is_missing, [*SUPPLIED_MODULES, "numpy", "tensorflow", "os", "__future__"]))


def test_where_the_runner_is_not_installed_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packages.is_missing.__wrapped__("no_such_package")
    monkeypatch.setattr(PathFinder, "find_spec", lambda _name: None)
    assert not packages.is_missing.__wrapped__("no_such_package")


def test_a_package_of_the_extra_has_a_command_and_another_a_page() -> None:
    assert packages.how_to_install("sklearn").startswith("'make setup SCIENCE=1' installs it")
    assert packages.how_to_install("yfinance") == "install its package where code runs, see docs/operate/packages.md"


@pytest.mark.parametrize("code", ["import (", "from . import x", "%%bash\nimport numpy", "x = 'import numpy'", ""])
def test_code_that_imports_nothing_is_no_reason_to_complain(code: str) -> None:
    assert list(packages.imported_modules(code)) == []
