"""The README and the site name every setting, command and make target, and nothing that does not exist."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel, SecretStr

from app.cli.main import app
from app.lessons.catalog import Catalog
from app.secret_files import SECRET_SETTINGS
from app.settings import IdentityProviderSettings, InvalidSettings, Settings
from docs.reference import attribute_docs, bounds, fill, unit, variables
from runners.config.settings import ACCEPTANCE, Limits, RunnerSettings
from tests.factories.course import LESSON, write_course

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = {page.relative_to(ROOT): fill(page.read_text()) for page in sorted((ROOT / "docs").rglob("*.md"))}
CONTRIBUTING = Path(".github/CONTRIBUTING.md")
ALL = {**PAGES, Path("README.md"): README, CONTRIBUTING: (ROOT / CONTRIBUTING).read_text()}
FOLDERS = ("app", "benchmarks", "docker", "lessons", "migrations", "runners", "tests")
FILES = [f"/{file.relative_to(ROOT)}" for folder in FOLDERS for file in (ROOT / folder).rglob("*.*")]
READMES = [Path(file[1:]) for file in FILES if file.endswith("/README.md")]
LONGEST_README = 120
"""Lines."""
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_INTERNAL_TARGETS = {"need-python", "setup-tests"}

CLASSES: list[tuple[type[BaseModel], str]] = [
    (Settings, "LOCKSTEP_"),
    (IdentityProviderSettings, "LOCKSTEP_OIDC__NAME__"),
    (RunnerSettings, "LOCKSTEP_"),
    (Limits, "LOCKSTEP_LIMITS__"),
]
FIELDS = [(model, *found) for model, prefix in CLASSES for found in variables(model, prefix)]


def page(name: str) -> str:
    return PAGES[Path("docs") / name]


def commands(command: Any, name: str = "lockstep") -> list[str]:
    """The full names of all commands; a group is recognized by having some (typer has its own copy of click)."""
    if not hasattr(command, "list_commands"):
        return [name]
    context = command.context_class(command)
    words = command.list_commands(context)
    return [full for word in words for full in commands(command.get_command(context, word), f"{name} {word}")]


def compose_defaults() -> set[tuple[str, str]]:
    found = re.findall(r"\$\{(LOCKSTEP_[A-Z_]+)(?::?-([^}]*))?", (ROOT / "docker-compose.yml").read_text())
    return {(variable, default or "empty") for variable, default in found}


COMMANDS = sorted(commands(typer.main.get_command(app)))
SECRET_FILES = {f"{variable}_FILE" for _, variable, name, _ in FIELDS if name in SECRET_SETTINGS}
KNOWN_SETTINGS = {variable for _, variable, _, _ in FIELDS} | {variable for variable, _ in compose_defaults()}
KNOWN_SETTINGS |= SECRET_FILES


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= LONGEST_README


def test_the_readme_and_the_changelog_count_the_lessons() -> None:
    count = len(list((ROOT / "lessons").glob("*/*/lesson.md")))
    for file in ("README.md", "CHANGELOG.md"):
        assert f"{count} lessons" in (ROOT / file).read_text()


@pytest.mark.parametrize(("model", "variable", "name", "field"), FIELDS, ids=[entry[1] for entry in FIELDS])
def test_a_setting_says_what_it_means_and_what_its_number_counts(
    model: type[BaseModel], variable: str, name: str, field: Any
) -> None:
    assert attribute_docs(model)[name]
    if field.annotation in (int, float):
        least, _most, counted = bounds(name, field)
        assert least is not None
        assert counted
    assert f"{{envvar}} {variable}\n" in page("operate/settings.md")


def test_every_secret_can_come_from_a_file_and_the_reference_says_so() -> None:
    """A secret is a value with ``SecretStr``, or a URL that may have a password."""
    secrets = {name for _, _, name, field in FIELDS if field.annotation is SecretStr or re.search("_url$", name)} - {
        "public_url"
    }
    assert secrets | {"oidc"} == SECRET_SETTINGS
    for variable in SECRET_FILES:
        assert f"`{variable}`" in page("operate/settings.md")


def test_the_unit_of_a_setting_comes_before_the_things_that_it_names() -> None:
    assert unit("visitor_retention_days") == "days"
    assert unit("visitors_per_address") == "visitors"


@pytest.mark.parametrize(("variable", "default"), sorted(compose_defaults()))
def test_what_compose_passes_on_is_documented_with_its_default(variable: str, default: str) -> None:
    if variable == "LOCKSTEP_UNSAFE_RUNNER":
        assert variable in page("operate/safety.md")
        return
    if (variable, default) == ("LOCKSTEP_PUBLIC_URL", "https://localhost"):  # Caddy's
        assert f"`{default}`" in page("operate/proxy.md")
        return
    rows = re.findall(rf"^\| [^|]*`{variable}`[^|]* \| ([^|]+) \|", page("operate/index.md"), re.MULTILINE)
    assert rows == [default] or (variable == "LOCKSTEP_OIDC" and variable in page("operate/sign-in.md"))


def _source_texts() -> str:
    """Every text in the source, including those between the values of an f-string."""
    trees = [ast.parse(file.read_text()) for name in ("app", "runners") for file in (ROOT / name).rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\0".join(text for text in constants if isinstance(text, str))


def test_the_messages_of_what_does_not_start_are_those_that_lockstep_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    table = page("operate/index.md").partition("`…` stands for what differs:")[2].partition("\n## ")[0]
    messages = re.findall(r"`([^`]+)`", "\n".join(row.split("|")[1] for row in table.splitlines() if "`" in row))
    monkeypatch.setenv("LOCKSTEP_LOG_FORMAT", "xml")
    with pytest.raises(InvalidSettings) as invalid:
        Settings.read()
    printed = "\0".join((_source_texts(), str(invalid.value), (ROOT / "docker/runner-start.sh").read_text()))
    values = ["10001", "attempt to write a readonly database", "database or disk is full"]  # of SQLite
    values += map(os.strerror, errno.errorcode)

    parts = re.split("|".join(["…", ": ", r"\. ", "\n", *map(re.escape, values)]), "\n".join(messages))

    assert len(messages) > 15
    assert [part for part in parts if part not in printed] == []


def test_the_acceptance_of_an_unsafe_runner_is_documented_word_for_word() -> None:
    assert f'LOCKSTEP_UNSAFE_RUNNER="{ACCEPTANCE}"' in page("operate/safety.md")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_in_the_reference(command: str) -> None:
    assert f"## `{command}`\n" in page("operate/commands.md")


@pytest.mark.parametrize("target", sorted(TARGETS - _INTERNAL_TARGETS))
def test_a_make_target_is_documented(target: str) -> None:
    assert target.startswith("check-") or f"`make {target}`" in page("develop/index.md")


@pytest.mark.parametrize("path", sorted(ALL), ids=str)
def test_a_page_names_only_what_exists(path: Path) -> None:
    text = ALL[path]
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))

    known = KNOWN_SETTINGS | _SET_BY_OTHERS | _providers(text)
    if path == Path("docs/operate/settings.md"):
        known |= _EXAMPLES_OF_OTHERS
    assert set(re.findall(r"LOCKSTEP_[A-Z_]*[A-Z]", text)) <= known
    assert set(re.findall(r"\bmake ([a-z-]+)\b", code)) <= TARGETS
    for line in re.findall(r"^lockstep .+$", text, re.MULTILINE):
        assert any(line.startswith(command) for command in COMMANDS), line
    for mentioned in re.findall(r"`((?:app|runners|lessons|tests|docs|docker|benchmarks|locks)/[\w./-]*)`", text):
        assert (ROOT / mentioned).exists(), mentioned
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", re.sub(r"```.*?```|`[^`\n]+`", "", text, flags=re.DOTALL)):
        assert (ROOT / path.parent / link).exists(), link


def test_what_the_course_covers_is_in_a_cell() -> None:
    cells = {
        f"{file.parent.name}#{name}"
        for file in (ROOT / "lessons" / "distributed-tensorflow").glob("*/lesson.md")
        for name in re.findall(r"^```\{code-cell\}.*\n(?:[^`\n].*\n)*?:?name: (\S+)$", file.read_text(), re.MULTILINE)
    }
    table = re.findall(r"^\| (.+?) \|(.*)\|$", page("teach/coverage.md"), re.MULTILINE)
    assert table
    for topic, where in table[1:]:
        named = set(re.findall(r"`([\w-]+#[\w-]+)`", where))
        assert named, topic
        assert named <= cells, topic


@pytest.mark.parametrize("path", READMES, ids=str)
def test_a_readme_of_a_folder_names_only_files_that_exist(path: Path) -> None:
    text, folder = (ROOT / path).read_text(), ROOT / path.parent
    for mentioned in re.findall(r"`([\w./-]+\.(?:css|html|json|md|py|toml|ts|ya?ml))`", text):
        known = (folder / mentioned).exists() or any(file.endswith(f"/{mentioned}") for file in FILES)
        assert known or mentioned in _FILES_IN_EXAMPLES, mentioned
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", re.sub(r"```.*?```|`[^`\n]+`", "", text, flags=re.DOTALL)):
        assert (folder / link).exists(), link


_FILES_IN_EXAMPLES = {"/etc/docker/daemon.json"}
"""Files of other machines that a README mentions."""
_SET_BY_OTHERS = {
    "LOCKSTEP_CI_BASE",
    "LOCKSTEP_TEST_CHAOS_S",
    "LOCKSTEP_TEST_CLASS",
    "LOCKSTEP_TEST_EXAMPLES",
    "LOCKSTEP_TEST_FUZZ_S",
    "LOCKSTEP_TEST_JAX_PYTHON",
    "LOCKSTEP_TEST_LATE",
    "LOCKSTEP_TEST_LONG_CASES",
    "LOCKSTEP_TEST_PRESS_MS",
    "LOCKSTEP_TEST_SHUFFLE",
    "LOCKSTEP_TEST_SLOW_CPU",
    "LOCKSTEP_TEST_SOAK_SESSIONS",
    "LOCKSTEP_TEST_TRAEFIK",
}
"""Variables of tests and CI, which are no settings of Lockstep."""
_EXAMPLES_OF_OTHERS = {"LOCKSTEP_DATABSE_URL", "LOCKSTEP_SERVICE_HOST"}
"""Names on the page about settings that are no settings."""


def _providers(text: str) -> set[str]:
    """The settings of the identity providers used as examples on a page."""
    return {name for name in re.findall(r"LOCKSTEP_[A-Z_]*[A-Z]", text) if name.startswith("LOCKSTEP_OIDC__")}


def test_the_lesson_that_authors_start_from_is_a_lesson(tmp_path: Path) -> None:
    courses = write_course(tmp_path)
    (example,) = re.findall(r"````md\n(.*?)````", page("teach/index.md"), re.DOTALL)
    (cell,) = re.findall(r"````md\n(.*?)````", README, re.DOTALL)
    course, slug = LESSON.split("/")
    (courses / course / slug / "lesson.md").write_text(example)

    catalog = Catalog(courses)
    catalog.reload()

    assert catalog.problems == ()
    assert [cell.name for cell in catalog.lesson(course, slug, "en").cells] == ["strategy"]
    assert cell in example


def test_decisions_are_numbered_in_order_each_number_once() -> None:
    records = sorted((ROOT / "docs" / "develop" / "decisions").glob("[0-9]*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for number, record in enumerate(records, 1):
        assert record.read_text().startswith(f"# {number}. ")


def test_every_helper_for_learners_is_described() -> None:
    module = ast.parse((ROOT / "runners" / "guest" / "api" / "public_api.py").read_text())
    listed = next(
        node.value for node in module.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    described = set(re.findall(r"lockstep\.([a-z]+)\(", page("learn/training-output.md")))
    assert described == set(ast.literal_eval(listed))
