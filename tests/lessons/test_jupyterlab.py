"""Saving a lesson in JupyterLab changes only what its author edited; everything else stays, byte for byte."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
import pytest
from ipykernel.ipkernel import IPythonKernel

from app.lessons.catalog import Catalog
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from runners.wire.jupyter_kernels import DEFAULT_KERNELS
from tests.factories.exercises import BODY
from tests.factories.lesson_source import FRONT_MATTER, lesson_text

ROOT = Path(__file__).parents[2] / "lessons"
LESSONS = sorted(ROOT.rglob("lesson*.md"))
TITLES = {kernel.name: kernel.title for kernel in DEFAULT_KERNELS}


@cache
def _notebook(path: Path) -> Any:
    """What jupytext reads. Do not change it: several tests have it."""
    return jupytext.reads(path.read_text(encoding="utf-8"), fmt="md")


def _kernelspec(path: Path) -> Any:
    """The kernel that a lesson names."""
    return _notebook(path).metadata.kernelspec


def _id(path: Path) -> str:
    return f"{path.parent.name}-{path.name}"


def _contents(folder: Path) -> Any:
    """The contents manager of JupyterLab's server, with jupytext installed."""
    return jupytext.TextFileContentsManager(root_dir=str(folder))


def _saved(path: Path, kernel: str) -> None:
    """Open the file as a notebook, start a kernel as JupyterLab does, and save."""
    contents = _contents(path.parent)
    model = json.loads(json.dumps(contents.get(path.name, type="notebook"), default=str))
    notebook = model["content"]
    notebook["metadata"]["kernelspec"] = {"display_name": TITLES[kernel], "language": "python", "name": kernel}
    notebook["metadata"]["language_info"] = IPythonKernel().language_info
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"]["trusted"] = True
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "an output\n"}]
            cell["metadata"]["execution"] = {"iopub.status.busy": "2026-11-22T15:00:00Z"}
    contents.save({"type": "notebook", "format": "json", "content": notebook}, path.name)


@pytest.mark.parametrize("path", LESSONS, ids=_id)
def test_jupytext_writes_a_lesson_as_it_read_it(path: Path) -> None:
    source = path.read_text(encoding="utf-8")

    written = jupytext.writes(_notebook(path), fmt="md")
    assert written == source, f"write it in jupytext's form: .venv/bin/jupytext --to md:myst {path}"


@pytest.mark.parametrize("path", LESSONS, ids=_id)
def test_a_lesson_saved_in_jupyterlab_after_its_cells_ran_is_the_same_file(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())

    _saved(copy, _kernelspec(path).name)

    assert copy.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", LESSONS, ids=_id)
def test_lockstep_installs_the_kernel_that_a_lesson_names(path: Path) -> None:
    kernel = _kernelspec(path)

    assert TITLES[kernel.name] == kernel.display_name


def test_what_jupyterlab_writes_into_cells_and_metadata_is_no_mistake(tmp_path: Path) -> None:
    course = tmp_path / "course"
    lesson = course / "mirrored-strategy" / "lesson.md"
    shutil.copytree(ROOT / "distributed-tensorflow" / lesson.parent.name, lesson.parent)
    (course / "course.toml").write_text(
        'title.en = "One"\nsummary.en = "One."\n'
        '[[modules]]\nslug = "all"\ntitle.en = "All"\nlessons = ["mirrored-strategy"]\n'
    )
    before = _english_lesson(tmp_path)

    contents = _contents(lesson.parent)
    notebook = contents.get(lesson.name, type="notebook")["content"]
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    for cell in notebook["cells"]:
        cell["metadata"] |= {"editable": True, "slideshow": {"slide_type": "slide"}, "jupyter": {"source_hidden": True}}
    contents.save({"type": "notebook", "format": "json", "content": notebook}, lesson.name)

    after = _english_lesson(tmp_path)
    assert "slide_type: slide" in lesson.read_text()
    assert [(c.name, c.title, c.code, c.topology, c.tags) for c in after.cells] == [
        (c.name, c.title, c.code, c.topology, c.tags) for c in before.cells
    ]
    assert (after.title, after.summary, after.topologies) == (before.title, before.summary, before.topologies)


def test_exercises_and_questions_stay_as_they_were_written(tmp_path: Path) -> None:
    header = FRONT_MATTER + LESSONS[0].read_text(encoding="utf-8").partition("jupytext:")[2].partition("\n---")[0]
    source = lesson_text("\n" + BODY, header.replace(FRONT_MATTER, FRONT_MATTER + "jupytext:") + "\n")
    source = source.replace("{code-cell} python", "{code-cell} ipython3")
    path = tmp_path / "lesson.md"
    path.write_text(source, encoding="utf-8")
    written = jupytext.writes(jupytext.reads(source, fmt="md"), fmt="md")
    assert written == source

    _saved(path, _kernelspec(path).name)
    assert path.read_text(encoding="utf-8") == source


def test_jupyterlab_shows_the_front_matter_as_the_first_cell() -> None:
    first = _notebook(LESSONS[0]).cells[0]

    assert first.cell_type == "raw"
    assert first.source.startswith("---\ntitle: ")


def _english_lesson(root: Path) -> Any:
    catalog = Catalog(root, quiet=True)
    catalog.reload()
    assert [mistake for mistake in catalog.problems if mistake.blocks] == []
    lesson = catalog.lesson("course", "mirrored-strategy", "en")
    assert list(jupyter_metadata_errors(lesson)) == []
    return lesson
