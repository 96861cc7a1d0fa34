"""The files for contributors: what GitHub and editors expect, with links that work."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
PAGES = [*sorted(GITHUB.glob("*.md")), ROOT / "CHANGELOG.md", ROOT / "lessons" / "LICENSE.md"]
FIELDS = {"checkboxes", "dropdown", "input", "markdown", "textarea"}


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one_that_github_accepts(form: Path) -> None:
    read: dict[str, Any] = yaml.safe_load(form.read_text())
    fields = [field for field in read["body"] if field["type"] != "markdown"]

    assert read["name"]
    assert read["description"]
    assert {field["type"] for field in read["body"]} <= FIELDS
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(re.fullmatch(r"[\w-]+", field["id"]) and field["attributes"]["label"] for field in fields)
    for field in fields:
        if field["type"] in ("dropdown", "checkboxes"):
            options = [str(option) for option in field["attributes"]["options"]]
            assert len(set(options)) == len(options) >= 2
    assert any(field.get("validations", {}).get("required") for field in fields)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links_of_community_files_lead_to_files(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_license_is_declared_where_tools_look_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["license"] == json.loads((ROOT / "package.json").read_text())["license"] == "Apache-2.0"
    assert json.loads((ROOT / "package-lock.json").read_text())["packages"][""]["license"] == "Apache-2.0"
    assert (ROOT / "LICENSE").read_text().split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "CC-BY-4.0" in (ROOT / "lessons" / "LICENSE.md").read_text()


def test_the_changelog_has_a_place_for_what_is_not_released_yet() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])


def test_the_dev_container_sets_up_as_a_checkout_does_and_allows_the_sandbox() -> None:
    text = re.sub(r"^\s*//.*$", "", (ROOT / ".devcontainer" / "devcontainer.json").read_text(), flags=re.MULTILINE)
    container = json.loads(text)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert re.findall(r"make ([a-z-]+)", container["postCreateCommand"])[0] in targets
    assert {"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"} <= set(container["runArgs"])
    assert container["forwardPorts"] == [8000]
