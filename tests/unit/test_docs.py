"""The README names every setting, every command and every make target, and nothing that does not exist."""

from __future__ import annotations

import ast
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
_MAKE_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


_ROW = r"^\| `{}` \| (.+) \| .+ \|$"
_IN_WORDS = {
    "LOCKSTEP_DATABASE_URL": "SQLite in the data directory",
    "LOCKSTEP_WARM_KERAS": "3",
    "LOCKSTEP_MIME_TYPES": "text, HTML, Markdown, LaTeX, JSON and pictures",
}
"""Defaults that are worked out where they are used, or too long for a table."""


def defaults(settings: type[BaseModel], prefix: str = "LOCKSTEP_") -> Iterator[tuple[str, str]]:
    """Every variable and its default, as the README writes it."""
    for name, field in settings.model_fields.items():
        variable = f"{prefix}{name.upper()}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from defaults(field.annotation, f"{variable}__")
        else:
            yield variable, _IN_WORDS.get(variable) or written(field.default)


def written(default: Any) -> str:
    return f"{default:.12g}" if isinstance(default, int | float) else str(default or "empty")


def commands(command: Any, name: str = "lockstep") -> Iterator[str]:
    """The full names of all commands; a group is told by having some (typer brings a click of its own)."""
    if not hasattr(command, "list_commands"):
        yield name
        return
    context = command.context_class(command)
    for word in command.list_commands(context):
        yield from commands(command.get_command(context, word), f"{name} {word}")


def compose_defaults() -> set[tuple[str, str]]:
    found = re.findall(r"\$\{(LOCKSTEP_[A-Z_]+)(?::?-([^}]*))?", (ROOT / "docker-compose.yml").read_text())
    return {(variable, default or "empty") for variable, default in found}


DEFAULTS = sorted({*defaults(Settings), *defaults(RunnerSettings)})
SETTINGS = [variable for variable, _default in DEFAULTS]
COMMANDS = sorted(commands(typer.main.get_command(app)))


@pytest.mark.parametrize(("variable", "default"), sorted({*DEFAULTS, *compose_defaults()}))
def test_a_setting_has_a_row_in_the_readme_with_its_default(variable: str, default: str) -> None:
    rows = re.findall(_ROW.format(variable), README, re.MULTILINE)
    assert rows
    assert set(rows) == {default}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_shown_in_the_readme(command: str) -> None:
    assert re.search(rf"^{re.escape(command)}\b", README, re.MULTILINE)


@pytest.mark.parametrize("target", ["setup", "serve", "test", "check", "lock", "floors"])
def test_a_make_target_is_shown_in_the_readme(target: str) -> None:
    assert f"make {target}" in README


def test_the_readme_names_no_setting_and_no_command_that_does_not_exist() -> None:
    known = {variable for variable, _default in {*DEFAULTS, *compose_defaults()}}
    assert set(re.findall(r"LOCKSTEP_[A-Z_]*[A-Z]", README)) <= known
    for line in re.findall(r"^lockstep .+$", README, re.MULTILINE):
        assert any(line.startswith(command) for command in COMMANDS), line


def test_the_readme_names_no_make_target_and_no_path_that_does_not_exist() -> None:
    targets = set(_MAKE_TARGET.findall((ROOT / "Makefile").read_text()))
    code = "\n".join(re.findall(r"```.*?```|`[^`]+`", README, re.DOTALL))
    assert set(re.findall(r"\bmake ([a-z-]+)\b", code)) <= targets
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


def test_every_helper_for_learners_is_described() -> None:
    module = ast.parse((ROOT / "runners" / "kernel" / "learner.py").read_text())
    listed = next(
        node.value for node in module.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    described = set(re.findall(r"lockstep\.([a-z]+)\(", (ROOT / "docs" / "helpers.md").read_text()))
    assert described == set(ast.literal_eval(listed))
