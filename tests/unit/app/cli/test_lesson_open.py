"""``lockstep lesson open``, with a program in the place of JupyterLab that says how it was started."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner, Result

from app.cli.lesson import app
from app.settings import Settings
from tests.factories.cli_process import finish, start

_LAB = """\
import json, os, pathlib, sys
from jupyter_client.kernelspec import KernelSpecManager
config = pathlib.Path(os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0])
settings = json.loads((config / "labconfig" / "default_setting_overrides.json").read_text())
said = {"arguments": sys.argv[1:], "settings": settings, "kernels": list(KernelSpecManager().find_kernel_specs())}
pathlib.Path(os.environ["SAID"]).write_text(json.dumps(said))
sys.exit(int(os.environ["STATUS"]))
"""

_WAITING_LAB = """\
import os, pathlib, signal, sys, threading
def end(*_):
    pathlib.Path(os.environ["SAID"]).write_text("ended")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # JupyterLab would ask
print(os.getpid(), flush=True)
threading.Event().wait()
"""
_PATIENCE_S = 120.0
"""For a start on a busy machine. A process that ends is noticed at once."""


@pytest.fixture
def lessons(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data_dir", "lessons_dir", "runner_socket"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    return settings.lessons_dir


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the program says how it was started."""
    package = tmp_path / "packages" / "jupyterlab"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(_LAB)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    monkeypatch.setenv("STATUS", "0")
    return tmp_path / "said"


def _open(target: str) -> Result:
    return CliRunner().invoke(app, ["open", target], catch_exceptions=False)


def test_jupyterlab_opens_the_file_with_its_kernel_and_no_setting_stays(lessons: Path, said: Path) -> None:
    before = sorted(lessons.rglob("*"))
    assert _open("small/first").exit_code == 0

    started = json.loads(said.read_text())
    assert started["arguments"] == [str(lessons / "small" / "first" / "lesson.md")]
    assert "lockstep-gpu-4" in started["kernels"]
    viewers = started["settings"]["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers == {"markdown": "Jupytext Notebook"}
    assert sorted(lessons.rglob("*")) == before


def test_its_exit_status_is_jupyterlabs(lessons: Path, said: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATUS", "3")
    assert _open("first").exit_code == 3


@pytest.fixture
def _heeds_ctrl_c() -> Iterator[None]:
    """What a shell starts in the background ignores Ctrl-C, and so would the programs that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heeds_ctrl_c")
@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_jupyterlab_ends_before_the_command_that_is_told_to_end(
    lessons: Path, said: Path, settings: Settings, signum: signal.Signals
) -> None:
    package = said.parent / "packages" / "jupyterlab"
    (package / "__main__.py").write_text(_WAITING_LAB)
    options = {name: getattr(settings, name) for name in ("data_dir", "lessons_dir", "runner_socket")}
    command = await start("lesson", "open", "small/first", **options)
    assert command.stdout is not None
    lab = psutil.Process(int(await asyncio.wait_for(command.stdout.readline(), _PATIENCE_S)))
    command.send_signal(signum)
    ended = await finish(command, within_s=_PATIENCE_S)

    assert (ended.status, ended.err) == (0, "")
    assert not lab.is_running()
    assert said.exists()  # noqa: ASYNC240 - it had the time to end by itself


def test_without_jupyterlab_it_says_which_package_to_install(lessons: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jupyterlab" else object())
    result = _open("first")

    assert result.exit_code == 1
    assert "needs jupyterlab in Lockstep's environment" in result.stderr
    assert "-m pip install jupyterlab\n" in result.stderr


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("none", "There is no lesson 'none' in"),
        ("small/none", "There is no lesson 'small/none' in"),
        ("nowhere/x/lesson.md", "There is no file nowhere/x/lesson.md."),
        ("{lessons}/small/course.toml", "is not a lesson: its file is called lesson.md"),
        ("{lessons}/small/unlisted", 'course.toml does not list this lesson. Add "unlisted" to the lessons'),
        ("{lessons}/loose/lesson.md", "is in no course"),
    ],
)
def test_what_is_no_lesson_of_a_course_is_refused(lessons: Path, target: str, sentence: str) -> None:
    for folder in ("small/unlisted", "loose"):
        (lessons / folder).mkdir()
        (lessons / folder / "lesson.md").write_text("# A lesson\n\nWords.\n")
    result = _open(target.format(lessons=lessons))

    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_name_in_several_courses_has_to_be_complete(lessons: Path) -> None:
    (lessons / "other" / "first").mkdir(parents=True)
    (lessons / "other" / "first" / "lesson.md").touch()
    result = _open("first")

    assert (result.exit_code, result.stderr) == (
        2,
        "There are several lessons 'first'. Write other/first or small/first.\n",
    )
