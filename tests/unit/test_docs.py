"""The README names every setting, every command and every make target, and nothing that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel

from app.cli.main import app
from app.lessons.catalog import Catalog
from app.settings import Settings
from runners.settings import RunnerSettings
from tests.factories.course import LESSON, write_course

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
_MAKE_TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def variables(settings: type[BaseModel], prefix: str = "LOCKSTEP_") -> Iterator[str]:
    for name, field in settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from variables(field.annotation, f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}"


def commands(command: Any, name: str = "lockstep") -> Iterator[str]:
    """The full names of all commands; a group is told by having some (typer brings a click of its own)."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name
    else:
        for word, each in inner.items():
            yield from commands(each, f"{name} {word}")


def compose_variables() -> set[str]:
    return set(re.findall(r"\$\{(LOCKSTEP_[A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))


SETTINGS = sorted({*variables(Settings), *variables(RunnerSettings)})
COMMANDS = sorted(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("variable", SETTINGS)
def test_a_setting_has_a_row_in_the_readme(variable: str) -> None:
    assert re.search(rf"^\| `{variable}` \| .+ \| .+ \|$", README, re.MULTILINE)


@pytest.mark.parametrize("variable", sorted(compose_variables()))
def test_a_variable_of_the_compose_file_is_explained(variable: str) -> None:
    assert f"`{variable}`" in README


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_shown_in_the_readme(command: str) -> None:
    assert re.search(rf"^{re.escape(command)}\b", README, re.MULTILINE)


@pytest.mark.parametrize("target", ["setup", "serve", "test", "check", "lock"])
def test_a_make_target_is_shown_in_the_readme(target: str) -> None:
    assert f"make {target}" in README


def test_the_readme_names_no_setting_and_no_command_that_does_not_exist() -> None:
    known = {*SETTINGS, *compose_variables()}
    assert set(re.findall(r"LOCKSTEP_[A-Z_]*[A-Z]", README)) <= known
    for line in re.findall(r"^lockstep .+$", README, re.MULTILINE):
        assert any(line.startswith(command) for command in COMMANDS), line


def test_the_readme_names_no_make_target_and_no_path_that_does_not_exist() -> None:
    targets = set(_MAKE_TARGET.findall((ROOT / "Makefile").read_text()))
    assert (
        set(re.findall(r"\bmake ([a-z]+)\b", "\n".join(re.findall(r"```.*?```|`[^`]+`", README, re.DOTALL)))) <= targets
    )
    for path in re.findall(r"`([a-z.]+(?:/[a-z_.]+)*/|[a-z_.]+/[a-z_./]+\.[a-z]+)`", README):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / path).exists(), path


def test_the_lesson_in_the_readme_is_a_lesson(tmp_path: Path) -> None:
    courses = write_course(tmp_path)
    (example,) = re.findall(r"````md\n(.*?)````", README, re.DOTALL)
    course, slug = LESSON.split("/")
    (courses / course / slug / "lesson.md").write_text(example)

    catalog = Catalog(courses)
    catalog.reload()

    assert catalog.problems == ()
    assert [cell.name for cell in catalog.lesson(course, slug, "en").cells] == ["strategy"]
