"""``lockstep lesson import``: what it prints, and how it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lesson import app
from app.settings import Settings
from tests.factories.notebook_files import code_cell, notebook_text, text_cell


@pytest.fixture
def lessons(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data_dir", "lessons_dir", "runner_socket"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    return settings.lessons_dir


def _lockstep(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_a_notebook_becomes_a_course_that_passes_the_check(lessons: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "My notebook.ipynb"
    notebook.write_text(
        notebook_text(text_cell("# My title\n\nThese are the words of it."), code_cell("print(1)", printed="1\n"))
    )
    result = _lockstep("import", str(notebook), "--into", str(lessons / "mine"), "--status", "published")

    assert result.exit_code == 0, result.output
    assert "My notebook.ipynb: outputs of 1 cell dropped" in result.stdout
    assert f"Imported 1 lesson with 1 cell into {lessons / 'mine'}, with 3 changes." in result.stdout
    assert _lockstep("check", "mine/my-notebook", "--static").exit_code == 0


def test_a_file_that_is_left_out_is_an_error(lessons: Path, tmp_path: Path) -> None:
    source = tmp_path / "notes\x1b[31m"
    source.mkdir()
    (source / "one.md").write_text("# One\n\nWords.\n")
    (source / "bad\x1b[31m.ipynb").write_text("{")
    result = _lockstep("import", str(source), "--into", str(lessons / "mine"))

    assert result.exit_code == 1
    assert "left out: this is not a notebook" in result.stderr
    assert "\x1b" not in result.output
    assert (lessons / "mine" / "one" / "lesson.md").is_file()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("missing.ipynb", "there is no such file or folder"),
        ("bomb.zip", "archives are not read; unpack it"),
        ("notes.rst", "this is not a notebook (.ipynb) or a Markdown file (.md)"),
        ("git://example.org/x", "'git://' is not an allowed protocol; use https, ssh, file"),
    ],
)
def test_a_source_that_cannot_be_imported_is_named(lessons: Path, tmp_path: Path, source: str, said: str) -> None:
    if source in ("bomb.zip", "notes.rst"):
        (tmp_path / source).write_text("x")
    path = source if "://" in source else str(tmp_path / source)
    result = _lockstep("import", path, "--into", str(lessons / "mine"))

    assert result.exit_code == 1
    assert said in result.stderr
    assert not (lessons / "mine").exists()


def test_a_repository_is_fetched_and_its_commit_named(lessons: Path, tmp_path: Path) -> None:
    remote = tmp_path / "my-book"
    remote.mkdir()
    (remote / "one.md").write_text("# One\n\nWords.\n")
    (remote / "link.md").symlink_to("/etc/hostname")
    identity = ["-c", "user.name=Author", "-c", "user.email=author@example.org"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=One"]):
        subprocess.run(["git", *identity, "-C", str(remote), *command], check=True)
    result = _lockstep("import", f"file://{remote}")

    assert result.exit_code == 0, result.output
    assert re.search(r"^Commit [0-9a-f]{40}$", result.stderr, re.MULTILINE)
    assert "link.md: left out: a symbolic link to something that is not a file of the repository" in result.stdout
    assert (lessons / "my-book" / "one" / "lesson.md").is_file()


def test_a_machine_that_does_not_exist_is_named(lessons: Path, tmp_path: Path) -> None:
    result = _lockstep("import", str(tmp_path), "--topology", "gpu:x")

    assert result.exit_code == 2
    assert "There is no machine 'gpu:x'." in result.stderr


_MEASURED = """
import re, sys, time
from pathlib import Path
from app.cli.lesson import app
before = time.process_time()
app(["import", *sys.argv[1:]], standalone_mode=False)
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1], time.process_time() - before)
"""


@pytest.mark.parametrize("megabytes", [20, pytest.param(60, marks=pytest.mark.long)])
def test_a_large_notebook_takes_little_memory_and_time(lessons: Path, tmp_path: Path, megabytes: int) -> None:
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 1_000_000}}
    cells = [code_cell(f"plot({number})") | {"outputs": [picture]} for number in range(megabytes)]
    notebook = tmp_path / "large.ipynb"
    notebook.write_text(notebook_text(text_cell("# Large\n\nThese are the words of it."), *cells))

    ran = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(notebook), "--into", str(lessons / "large")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"Imported 1 lesson with {megabytes} cells" in ran.stdout
    kilobytes, seconds = map(float, ran.stdout.split()[-2:])
    assert kilobytes < 150_000 + 5_000 * megabytes  # 108 MB without it, and 3 bytes for each of the file
    assert seconds < 10  # 0.1 to 0.5


def test_a_notebook_that_is_too_large_is_refused_before_it_is_read(lessons: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "huge.ipynb"
    with notebook.open("wb") as file:
        file.truncate(64_000_001)  # takes no room on the disk
    result = _lockstep("import", str(notebook), "--into", str(lessons / "mine"))

    assert result.exit_code == 1
    assert "huge.ipynb: left out: the file has 64,000,001 bytes, and the limit is 64,000,000" in result.stderr
