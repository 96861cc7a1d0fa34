"""``lockstep course``: add, list, update and remove a course that is kept elsewhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.course import app
from app.cli.lesson import app as lesson_app
from app.settings import Settings
from tests.factories.lesson_source import CELL, FOR_JUPYTER, FRONT_MATTER, write_lesson, write_toml


@pytest.fixture
def remote(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("data_dir", "lessons_dir", "runner_socket"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    folder = tmp_path / "remote"
    write_lesson(folder / "away" / "far", f"Words.\n\n{CELL}", header=FRONT_MATTER + FOR_JUPYTER)
    write_toml(folder, "far", course="away")
    (folder / "away" / "link").symlink_to("/etc/hostname")
    identity = ["-c", "user.name=Author", "-c", "user.email=author@example.org"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=One"]):
        subprocess.run(["git", *identity, "-C", str(folder), *command], check=True)
    return folder


def _course(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_a_course_is_added_listed_checked_updated_and_removed(remote: Path) -> None:
    added = _course("add", str(remote))
    (listed,) = json.loads(_course("list", "--json").stdout)

    assert added.exit_code == 0, added.output
    assert added.stdout == f"Added away at commit {listed['commit']}.\n"
    assert "away/link: left out: a symbolic link" in added.stderr
    assert (listed["slug"], listed["url"], listed["folder"]) == ("away", remote.as_uri(), "away")
    assert listed["commit"][:12] in _course("list").stdout
    checked = CliRunner().invoke(lesson_app, ["check", "away/far", "--static"])
    assert (checked.exit_code, checked.stdout) == (0, "1 lesson read, 0 errors.\n")
    assert _course("update", "away", "--to", listed["commit"]).exit_code == 0
    assert _course("remove", "away").stdout == "Removed away.\n"
    assert _course("list").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "/tmp"), "/tmp: this is not a git repository"),
        (("update", "none"), "there is no added course 'none'"),
        (("remove", "none"), "there is no added course 'none'"),
        (("add", "REMOTE", "--name", "small"), "there is a course 'small' already"),
    ],
)
def test_what_cannot_be_done_is_said(remote: Path, arguments: tuple[str, ...], said: str) -> None:
    result = _course(*(str(remote) if word == "REMOTE" else word for word in arguments))

    assert result.exit_code == 1
    assert said in result.stderr
