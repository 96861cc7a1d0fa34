"""Every lesson as a downloaded file: what its first cells say, and what plain TensorFlow does with it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pypandoc
import pytest

from app.exports.notebook import build_notebook, dump_notebook
from app.lessons.model import Lesson
from runners.wire.protocol import Topology
from tests.factories.guides import guide_blocks
from tests.factories.plain_jupyter import run_in_plain_jupyter
from tests.factories.shipped_lessons import shipped_catalog

COURSE = "distributed-tensorflow"
CATALOG = shipped_catalog()
LESSONS = list(CATALOG.every())
PAGE = "https://example.org/en/courses/a/b"


def _exported(slug: str, language: str = "en") -> Any:
    return build_notebook(CATALOG.lesson(COURSE, slug, language), PAGE)


@cache
def _notebook(slug: str, language: str) -> Any:
    """The same, made once. Do not change it: several tests have it."""
    return _exported(slug, language)


def _code(made: Any) -> list[Any]:
    return [cell for cell in made.cells if cell.cell_type == "code"]


def _text(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_the_first_cells_name_the_machine_and_how_to_get_one(lesson: Lesson) -> None:
    note, setup = _notebook(lesson.slug, lesson.language).cells[1:3]
    topology = Topology.parse(lesson.topology)

    assert " 0 " not in note.source
    assert ("CPU" if topology.kind == "cpu" else str(topology.devices or topology.workers)) in note.source
    plain = topology.kind in ("cpu", "gpu")
    assert (f"lockstep kernelspec install --topology {topology}" in note.source) is not plain
    assert "list_logical_devices" not in setup.source, "it starts TensorFlow before the cells can set up devices"
    ast.parse(setup.source)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_cells_that_need_a_cluster_or_a_tpu_say_so_and_no_others(lesson: Lesson) -> None:
    cells = {cell.id.removeprefix("cell-"): cell for cell in _code(_notebook(lesson.slug, lesson.language))}

    for cell in lesson.cells:
        needs = Topology.parse(cell.topology).kind not in ("cpu", "gpu") or cell.keras != lesson.keras
        first = f"# Needs {cell.topology}, Keras {cell.keras}\n" if needs else ""
        assert cells[cell.name].source == first + cell.code


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.slug}-{lesson.language}")
def test_links_to_other_lessons_lead_to_their_pages_from_wherever_the_file_is(lesson: Lesson) -> None:
    texts = [cell.source for cell in _notebook(lesson.slug, lesson.language).cells if cell.cell_type == "markdown"]

    assert re.findall(r"\]\((?!https?:|mailto:|attachment:|#)[^)]*\)", "\n".join(texts)) == []


@pytest.mark.slow
def test_plain_tensorflow_makes_the_gpus_of_a_lesson_and_skips_cells_that_need_more(tmp_path: Path) -> None:
    """Four lessons one after the other in one kernel, because importing TensorFlow takes seconds."""
    whole = _exported("distribution-strategies")
    whole.cells = _code(whole)[:2]
    for slug in ("multi-worker", "parameter-servers", "tpu-strategy"):
        setup, *cells = _code(_exported(slug))
        whole.cells += [setup, *[cell for cell in cells if cell.source.startswith("# Needs ")][:4]]

    run_in_plain_jupyter(whole, tmp_path, timeout_s=240)
    setup, replicas, *others = whole.cells

    assert _text(setup) == "devices: 4 logical devices of the CPU\n"
    assert "Replicas: 4" in _text(replicas)
    for first in range(0, 15, 5):
        setup, *cells = others[first : first + 5]
        assert "To run the cells, install the kernel “Lockstep, " in _text(setup)
        for cell in cells:
            assert _text(cell).startswith("Skipped: this cell needs another machine ("), _text(cell)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ko", pytest.param("zh", marks=pytest.mark.long)])
def test_the_latex_of_the_guide_has_the_formulas_code_and_drawings_of_a_lesson(language: str, tmp_path: Path) -> None:
    """Without its programs that draw and print: XeTeX is too large for the setup, and these drawings are read here."""
    commands, fonts = [block for block in guide_blocks("import.md", "sh") if "collectives.tex" in block]
    exported, *made_here = (commands + fonts).replace("collectives", "gradient-by-hand").splitlines()
    assert exported == "lockstep lesson export gradient-by-hand"
    notebook = _notebook("gradient-by-hand", language)
    (tmp_path / "gradient-by-hand.ipynb").write_text(dump_notebook(notebook))
    for command in made_here:
        if not command.startswith(("for drawing in ", "xelatex ")):
            _run_in_shell(command, tmp_path)

    latex = (tmp_path / "gradient-by-hand.tex").read_text()
    header, begin, rest = latex.partition("\\begin{document}")
    body = begin + rest
    assert "\\setmainfont{Noto Serif CJK KR}\\setmonofont{Noto Sans Mono CJK KR}" in header
    assert _open_environments(body) == []
    groups = re.findall("[{}]", re.sub(r"\\.", "", body))
    assert groups.count("{") == groups.count("}") > 1000
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    words = set(re.findall("[가-힣一-鿿]{2,}", re.sub(r"\]\([^)]*\)", "]", prose)))
    assert len(words) > 200
    assert [word for word in words if word not in body] == []
    formulas = ["".join(formula.split()) for formula in re.findall(r"\$\$(.*?)\$\$", prose, re.DOTALL)]
    assert formulas
    assert [formula for formula in formulas if formula not in "".join(body.split())] == []
    assert body.count("\\prompt{In}") == len(_code(notebook))
    drawings = re.findall(r"\\include\w+(?:\[[^]]*\])?\{([^}]*)\}", body)
    assert len(drawings) == prose.count("](attachment:") > 0
    for drawing in drawings:
        path = tmp_path / drawing
        assert path.suffix == ".pdf", "LaTeX reads no SVG"
        assert ElementTree.parse(path.with_suffix(".svg")).getroot().tag.endswith("}svg")
    assert "\\includesvg" not in body, "it would run another program"
    counters = set(re.findall(r"\\def\\LTcaptype\{(\w+)\}", body))
    assert [counter for counter in counters if f"\\newcounter{{{counter}}}" not in header] == []


def _run_in_shell(command: str, folder: Path) -> None:
    programs = [str(Path(sys.executable).parent), str(Path(pypandoc.get_pandoc_path()).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(programs)}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _open_environments(latex: str) -> list[str]:
    """The environments of LaTeX that do not end where they should."""
    opened: list[str] = []
    for what, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", latex):
        if what == "begin":
            opened.append(name)
        elif opened[-1:] == [name]:
            opened.pop()
        else:
            return [*opened, name]
    return opened
