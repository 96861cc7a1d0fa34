"""``lockstep lesson open``: a lesson as a notebook in JupyterLab, with the kernel of its machine."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import ending_at_sigterm, fail, read_settings
from app.cli.lesson_report import shown_path
from app.cli.lesson_target import find_lesson_file
from app.lessons.document import LessonDecodeError, decode_source, parse_document
from app.lessons.machine_options import DEFAULT_MACHINE_OPTIONS
from app.settings import Settings
from runners.wire.jupyter_kernels import JupyterKernel
from runners.wire.protocol import Topology

_PACKAGES = ("jupyterlab", "jupytext")
_PATIENCE_S = 10
"""How long JupyterLab has to end its kernels before it is killed."""


def open_lesson(
    lesson: Annotated[
        str, typer.Argument(metavar="FILE|LESSON", help="A lesson's file or folder, or its name, also COURSE/LESSON.")
    ],
) -> None:
    """Open a lesson as a notebook in JupyterLab, with the kernel of its machine. Changes no settings of Jupyter."""
    settings = read_settings()
    file = find_lesson_file(settings.lessons_dir, lesson)
    if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        command = shlex.join([sys.executable, "-m", "pip", "install", *missing])
        fail(f"Opening a lesson needs {' and '.join(missing)} in Lockstep's environment. To install: {command}")
    kernel = _kernel_of(file)
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-lab-") as folder,
        suppress(KeyboardInterrupt),
        ending_at_sigterm(0),
    ):
        installed = subprocess.run(_install_command(settings, kernel, folder), stdout=subprocess.DEVNULL)
        if installed.returncode:
            raise typer.Exit(installed.returncode)
        if status := _run_lab(file, _lab_environment(Path(folder))):
            raise typer.Exit(status)


def _run_lab(file: Path, environment: dict[str, str]) -> int:
    """Run JupyterLab to its end; returns its exit status. At SIGTERM and Ctrl-C, it ends before this command does."""
    lab = subprocess.Popen([sys.executable, "-m", "jupyterlab", str(file)], env=environment)
    try:
        return lab.wait()
    except (SystemExit, KeyboardInterrupt):
        lab.terminate()  # at Ctrl-C it would ask whether to end, and nobody would read the answer
        with suppress(subprocess.TimeoutExpired):
            lab.wait(_PATIENCE_S)
        raise
    finally:
        lab.kill()
        lab.wait()


def _kernel_of(file: Path) -> JupyterKernel:
    """The kernel of the lesson's machine, which the English file names."""
    english = file.with_name("lesson.md")
    try:
        header = parse_document(decode_source(english.read_bytes()), "en", None, english.parent).header
    except LessonDecodeError as e:
        fail(f"{shown_path(english)}:{e.fault.line}: {e.fault.text}")
    except OSError as e:
        fail(f"{shown_path(english)} cannot be read: {e.strerror}.")
    default = DEFAULT_MACHINE_OPTIONS
    return JupyterKernel(Topology.parse(header.topology or default.topology), header.keras or default.keras)


def _install_command(settings: Settings, kernel: JupyterKernel, folder: str) -> list[str]:
    tool = [sys.executable, "-m", "runners.jupyter.kernelspec", "install", f"--prefix={folder}"]
    site = [f"--data-dir={settings.data_dir}", f"--socket={settings.socket}"]
    return [*tool, *site, f"--topology={kernel.topology}", f"--keras={kernel.keras}"]


def _lab_environment(folder: Path) -> dict[str, str]:
    """Where JupyterLab finds the kernel, and that it opens Markdown as notebooks. Other settings of the user count."""
    config = folder / "config"
    (config / "labconfig").mkdir(parents=True)
    overrides = {"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Jupytext Notebook"}}}
    (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(overrides))
    added = {"JUPYTER_PATH": folder / "share" / "jupyter", "JUPYTER_CONFIG_PATH": config}
    paths = {name: os.pathsep.join(filter(None, [str(path), os.environ.get(name)])) for name, path in added.items()}
    return {**os.environ, **paths}
