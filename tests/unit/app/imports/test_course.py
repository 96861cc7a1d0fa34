"""Notebooks, MyST and Jupyter Books as courses: complete, loadable, and nothing lost without a word."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import jupytext
import pytest

from app.imports.book import plan_file, plan_folder
from app.imports.course import ImportedCourse, ImportOptions, import_course
from app.imports.report import CannotImport, Report
from app.imports.source_tree import SourceTree
from app.lessons.catalog import Catalog
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from app.lessons.model import CellTag, Lesson, Prose
from tests.factories.notebook_files import PNG, PNG_BASE64, code_cell, notebook_text, text_cell

PUBLISHED = Path(__file__).parent / "published"
"""Files that were written for the tests: each uses what such files use. A long test runs their cells."""


NO_MODULE = "install its package where code runs, see docs/operate/packages.md"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def courses(tmp_path: Path) -> Path:
    return tmp_path / "courses"


def _import(source: Path, courses: Path, file: str = "", *, replace: bool = False) -> tuple[ImportedCourse, Report]:
    report = Report()
    tree = SourceTree(source)
    plan = plan_file(tree, PurePosixPath(file)) if file else plan_folder(tree, source.name, report)
    return import_course(tree, plan, courses / "imported", report, ImportOptions(), replace=replace), report


def _lesson(source: Path, courses: Path, file: str) -> tuple[Lesson, Report]:
    """The only lesson of an import, which the reader of lessons accepts."""
    _, report = _import(source, courses, file)
    (lesson,) = _lessons(courses)
    return lesson, report


def _lessons(courses: Path) -> list[Lesson]:
    catalog = Catalog(courses, quiet=True)
    catalog.reload()
    lessons = list(catalog.with_drafts.every())
    assert catalog.problems == ()
    assert [error for lesson in lessons for error in jupyter_metadata_errors(lesson)] == []
    return lessons


def _notebook(source: Path, *cells: dict[str, object], name: str = "first.ipynb", **more: Any) -> str:
    (source / name).write_text(notebook_text(*cells, **more))
    return name


def _said(report: Report) -> str:
    return "\n".join(map(str, [*report.changes, *report.failures]))


def test_a_colab_notebook_becomes_a_lesson(source: Path, courses: Path) -> None:
    file = _notebook(
        source,
        text_cell("##### Copyright 2019 The TensorFlow Authors."),
        code_cell('#@title Licensed under the "License"\n# you may not\n', {"cellView": "form", "id": "Tce3"}),
        text_cell("# Distributed training\n\nYou will train a model on several devices at once."),
        text_cell("## Setup"),
        code_cell(
            "!pip install -q tensorflow \\\n  keras\n%tensorflow_version 2.x\nimport tensorflow as tf\ntf.add?\n"
        ),
        code_cell("def make_model():\n  return 1\n", printed="x\n"),
        text_cell("# Train"),
        code_cell("print(1)"),
        code_cell("print(2)"),
        metadata={"kernelspec": {"name": "python3", "language": "python"}, "colab": {"name": "x.ipynb"}},
    )
    lesson, report = _lesson(source, courses, file)

    assert (lesson.title, lesson.summary) == (
        "Distributed training",
        "You will train a model on several devices at once.",
    )
    assert [cell.name for cell in lesson.cells] == [
        "licensed-under-the-license",
        "setup",
        "make-model",
        "train",
        "train-2",
    ]
    assert lesson.cells[0].tags == {CellTag.hide_input}
    assert lesson.cells[1].code.split("\n") == [
        "!pip install -q tensorflow keras",
        "# %tensorflow_version 2.x",
        "import tensorflow as tf",
        "?tf.add",
    ]
    assert [(heading.level, heading.text) for heading in lesson.toc] == [(2, "Setup"), (2, "Train")]
    said = _said(report)
    assert "first.ipynb, cell 5: commented out: %tensorflow_version 2.x, which this kernel does not have" in said
    assert "outputs of 1 cell dropped" in said


def test_the_result_is_a_notebook_for_jupytext(source: Path, courses: Path) -> None:
    file = _notebook(source, text_cell("# One"), text_cell("Two."), text_cell("Three."), code_cell("```\nx\n"))
    lesson, _ = _lesson(source, courses, file)

    made = jupytext.reads(lesson.source_path.read_text(), fmt="md:myst")
    assert [(cell.cell_type, cell.source) for cell in made.cells if "title:" not in cell.source] == [
        ("markdown", "Two."),
        ("markdown", "Three."),
        ("code", "```\nx"),
    ]


def test_pictures_become_assets_wherever_they_come_from(source: Path, courses: Path) -> None:
    (source / "img").mkdir()
    (source / "img" / "the plot.png").write_bytes(PNG)
    (source / "img" / "other.png").write_bytes(PNG + b"\0")
    file = _notebook(
        source,
        text_cell("# Pictures"),
        text_cell("![first](attachment:image.png)", attachments={"image.png": {"image/png": PNG_BASE64}}),
        text_cell(f"![](img/the%20plot.png) ![inline](data:image/png;base64,{PNG_BASE64})"),
        text_cell('<center><img src="img/other.png" alt="Other" width="300"></center>'),
        text_cell("![far](https://example.org/a.png) [![badge](https://example.org/b.svg)](https://example.org/c)"),
        text_cell("![gone](img/gone.png) ![up](../secret.png)"),
    )
    (source.parent / "secret.png").write_bytes(PNG)
    lesson, report = _lesson(source, courses, file)
    text = lesson.source

    assert "![first](assets/image.png)" in text
    assert "![image](assets/image.png)" in text or "![the plot](assets/the-plot.png)" in text
    assert "![Other](assets/other.png)" in text
    assert "[far](https://example.org/a.png) [badge](https://example.org/c)" in text
    assert "gone" in text
    assert "secret.png" not in {path.name for path in lesson.source_path.parent.rglob("*")}
    assert "there is no file 'img/gone.png' here" in _said(report)
    assert "there is no file '../secret.png' here" in _said(report)


@pytest.mark.parametrize(
    "options",
    [
        ":name: fig-loss\n:width: 50%\n:alt: Falling loss",
        ":label: fig-loss\n:width: 50%\n:alt: Falling loss",
        "---\nname: fig-loss\nwidth: 50%\nalt: Falling loss\n---",
    ],
)
def test_a_figure_keeps_its_name_and_its_width(source: Path, courses: Path, options: str) -> None:
    (source / "loss.png").write_bytes(PNG)
    figure = f"```{{figure}} loss.png\n{options}\n\nLoss.\n```\n"
    (source / "a.md").write_text(f"# Loss\n\nThe loss falls in every step, see {{numref}}`fig-loss`.\n\n{figure}")

    lesson, report = _lesson(source, courses, "a.md")

    assert ":width: '50%'\n" in lesson.source
    assert 'href="#fig-loss">Figure 1</a>' in str(lesson.blocks[0])
    assert "dropped" not in _said(report)


def test_a_book_that_cites_gets_a_bibliography_and_links_between_its_pages(source: Path, courses: Path) -> None:
    (source / "references.bib").write_text("@article{a, title={T}, author={A, B}, year={2017}}\n")
    (source / "a.md").write_text(
        "# One\n\nAs {cite}`a` say, this is the first of two pages.\n\nPlain words are the summary of it.\n\n"
        '+++ {"part": "abstract"}\n\nSee [](#far) for more.\n'
    )
    (source / "b.md").write_text("# Two\n\nThe second of the two pages is here.\n\n(far)=\n## Far away\n\nWords.\n")
    _, report = _import(source, courses)
    one = next(lesson for lesson in _lessons(courses) if lesson.slug == "a")

    assert (report.failures, report.warnings) == ([], [])
    assert "```{bibliography}" in one.source
    assert one.summary == "Plain words are the summary of it."
    assert "[Far away](../b/lesson.md#far)" in one.source
    assert "abstract" not in one.source


def test_what_a_page_cannot_show_is_a_warning_that_names_the_course(source: Path, courses: Path) -> None:
    (source / "a.md").write_text("# One\n\n{nosuch}`x` are the words of this paragraph.\n")
    _, report = _import(source, courses)

    assert report.failures == []
    assert str(report.warnings[0]).startswith("imported/a/lesson.md:")
    assert ": warning: unknown role {nosuch}" in str(report.warnings[0])


def test_html_becomes_markdown_and_scripts_go(source: Path, courses: Path) -> None:
    file = _notebook(
        source,
        text_cell(
            "# HTML\n\nIt is <b>fast</b>, x<sup>2</sup>,<br>and `<b>` stays. <a href='https://x.org/a b'>There</a>"
        ),
        text_cell("<details>\n<summary>Click for <b>it</b></summary>\n\nThe **answer** is 42.\n\n</details>"),
        text_cell("<table><tr><th>a</th><th>b</th></tr><tr><td>1|2</td><td><i>3</i></td></tr></table>"),
        text_cell("<table><tr><td>an inner <table></td></tr></table>"),
        text_cell("<script>alert(1)</script>\n\n<!-- a secret\ncomment -->\n\n<style>p {}</style>"),
    )
    lesson, report = _lesson(source, courses, file)
    text = lesson.source

    assert "It is **fast**, x${}^{\\text{2}}$,\\\nand `<b>` stays. [There](https://x.org/a%20b)" in text
    assert "{dropdown} Click for it" in text
    assert "| a | b |\n| --- | --- |\n| 1\\|2 | *3* |" in text
    assert "alert" not in text
    assert "% a secret\n% comment" in text
    assert "HTML removed, its text kept: <script>, <style>" in _said(report)


def test_formulas_are_written_as_lessons_can_show_them(source: Path, courses: Path) -> None:
    file = _notebook(
        source,
        text_cell("# Formulas\n\nSee \\\\(x_1\\\\), $$y^2$$ and $ a_b $ but `$$code$$` and $5 or 6."),
        text_cell("\\begin{align}\nx &= 1 \\\\\ny &= 2\n\\end{align}"),
        text_cell("$$\n\\begin{eqnarray*} a &=& b \\nonumber \\end{eqnarray*}\n$$"),
        text_cell("$$\n\\undefinedcommand{x}\n$$"),
    )
    lesson, report = _lesson(source, courses, file)

    assert "See $x_1$, $y^2$ and $a_b$ but `$$code$$` and $5 or 6." in lesson.source
    assert "\\begin{align}\nx" in lesson.source
    assert "\\begin{eqnarray*}" in lesson.source
    assert "```latex\n\\undefinedcommand{x}\n```" in lesson.source
    assert "formula shown as its LaTeX" in _said(report)


def test_code_that_cannot_run_is_kept_and_named(source: Path, courses: Path) -> None:
    file = _notebook(
        source,
        text_cell("# Code"),
        code_cell("print 'old'"),
        code_cell("%%bigquery df\nselect 1"),
        code_cell("from google.colab import drive\n!wget https://example.org/x"),
        code_cell("x = 1", {"tags": ["hide-cell", "parameters", "exercise"]}),
        code_cell("  \n"),
    )
    lesson, report = _lesson(source, courses, file)

    assert [sorted(cell.tags) for cell in lesson.cells][:3] == [["raises-exception"], ["skip-execution"], []]
    said = _said(report)
    assert "cell 2: cell tagged raises-exception: line 1 is not Python 3" in said
    assert "cell 4: kept, but it will fail: only Colab has google.colab" in said
    assert "cell 4: kept, but it will fail: it loads from the network" in said
    assert "cell 5: tag 'exercise' dropped" in said
    assert "cell 6: empty cell dropped" in said


def test_files_as_others_publish_them_load_as_they_are(courses: Path) -> None:
    _, report = _import(PUBLISHED, courses)
    lessons = {lesson.slug: lesson for lesson in _lessons(courses)}
    said, text = _said(report), {slug: lesson.source for slug, lesson in lessons.items()}

    assert (list(lessons), report.failures) == (["book-page", "colab", "lecture", "tutorial"], [])
    # references
    assert "They build on an earlier lecture, on intro, and on the law of large numbers." in text["lecture"]
    assert "By {eq}`series`, and euler_equation of another lecture" in text["lecture"]
    assert "{numref}`computed` shows for a [replica](../book-page/lesson.md#term-replica)" in text["lecture"]
    assert ":caption: Partial sums\n:label: computed\n" in text["lecture"]
    assert "[Figure 1](../lecture/lesson.md#partial_sums) and [(1)](../lecture/lesson.md#series)" in text["book-page"]
    assert "[one lecture](../lecture/lesson.md#key%3Aformulas)" in text["book-page"]
    assert (
        "and of a page. See also [the formulas of the lecture](../lecture/lesson.md#key%3Aformulas)"
        in text["book-page"]
    )
    for target in ("linear_equations", "/intro", "lln", "euler_equation", "other_ex3"):
        assert f"reference replaced by its text: '{target}' leads to no page or name here" in said
    # text
    assert "\\quad \\text{when }n\\text{ is large}\n$$ (tail)" in text["lecture"]
    assert "\nimport tensorflow as tf" in lessons["tutorial"].cells[1].code
    assert lessons["book-page"].summary.startswith("This page shows what a batch becomes on four devices, and")
    assert "| Devices | Examples |" in text["book-page"]
    assert "[View online](https://example.org/tutorial) · [Download notebook](" in text["tutorial"]
    assert '<p class="admonition-title">Theorem (Convergence)</p>' in "".join(
        str(block.html) for block in lessons["lecture"].blocks if isinstance(block, Prose)
    )
    # files that the cells read
    colab = {cell.name: cell for cell in lessons["colab"].cells}
    assert colab["helpers-py"].code == "%%writefile helpers.py\ndef doubled(column):\n    return 2 * column"
    assert colab["data-sizes-csv"].code == "import os\nos.makedirs('data', exist_ok=True)"
    assert colab["data-sizes-csv-2"].code == "%%writefile ./data/sizes.csv\nsize\n8\n32"
    assert colab["data-sizes-csv-2"].tags == {CellTag.hide_input}
    assert "colab.ipynb, cell 6: a cell above it writes 'helpers.py', which a sandbox lacks" in said


def test_files_that_a_cell_cannot_have_are_named(source: Path, courses: Path) -> None:
    (source / "large.csv").write_text("1\n" * 50_000)
    (source / "picture.png").write_bytes(PNG)
    (source.parent / "secret.csv").write_text("secret")
    (source / "link.csv").symlink_to(source.parent / "secret.csv")
    names = "'large.csv', 'picture.png', 'link.csv', 'none.csv', 'https://example.org/large.csv'"
    file = _notebook(source, text_cell("# Files"), code_cell(f"for name in {names}:\n    open(name)"))
    lesson, report = _lesson(source, courses, file)

    assert [cell.name for cell in lesson.cells] == ["files"]
    assert _said(report).count("kept, but it may fail: a cell cannot read") == 2
    assert "a cell cannot read 'large.csv' (it has 100,000 bytes, and the limit is 50,000)" in _said(report)
    assert "a cell cannot read 'picture.png' (it is not text)" in _said(report)


def test_code_for_keras_2_gets_keras_2(source: Path, courses: Path) -> None:
    file = _notebook(source, text_cell("# Old"), code_cell("# reset_states()\nm.reset_states()"))
    lesson, report = _lesson(source, courses, file)

    assert (lesson.keras, lesson.cells[0].keras) == (2, 2)
    assert "first.ipynb: keras: 2 chosen, because Keras 3 has no reset_states()" in _said(report)
    (source / "new.ipynb").write_text(
        notebook_text(text_cell("# New\n\n`reset_states()`"), code_cell("# reset_states()\nm.reset_state()"))
    )
    _import(source, courses, "new.ipynb", replace=True)
    assert [lesson.keras for lesson in _lessons(courses)] == [3]


def test_an_old_notebook_is_read(source: Path, courses: Path) -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "source": ["Old"]},
        {"cell_type": "markdown", "source": "Words of an old notebook."},
        {"cell_type": "code", "language": "python", "input": ["print(1)\n", "print(2)"], "outputs": []},
    ]
    (source / "old.ipynb").write_text(json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}))
    lesson, _ = _lesson(source, courses, "old.ipynb")

    assert (lesson.title, lesson.cells[0].code) == ("Old", "print(1)\nprint(2)")


def test_a_code_block_that_a_cell_leaves_open_does_not_swallow_the_next(source: Path, courses: Path) -> None:
    file = _notebook(
        source, text_cell("# Open\n\n```python\nx = 1"), code_cell("print(1)"), text_cell("<!-- open"), code_cell("2")
    )
    lesson, _ = _lesson(source, courses, file)

    assert [cell.code for cell in lesson.cells] == ["print(1)", "2"]


def test_a_myst_file_keeps_its_directives(source: Path, courses: Path) -> None:
    (source / "one.md").write_text(
        "---\nkernelspec:\n  language: python\n  name: python3\nauthors: [me]\n---\n\n"
        "(linear)=\n# Linear models\n\n```{contents}\n:depth: 2\n```\n\n"
        "In this lecture we study linear models.\n\n## Setup\n\nSee {ref}`linear` and {doc}`two` and [](two.md).\n\n"
        "```{code-cell} ipython3\n---\ntags: [remove_cell]\n---\nimport numpy as np\n```\n\n"
        "```{code-cell} ipython3\n:tags: [skip-execution]\nx = np.ones(2)\n```\n\n"
        "```{admonition} Hello\n:class: tip\nLook [here](data.csv).\n```\n"
    )
    (source / "two.md").write_text("# The second\n\nIt has words.\n")
    (source / "data.csv").write_text("a,b\n")
    _, report = _import(source, courses)
    lesson = next(lesson for lesson in _lessons(courses) if lesson.slug == "one")

    assert lesson.title == "Linear models"
    assert [(cell.name, sorted(cell.tags)) for cell in lesson.cells] == [
        ("setup", ["remove-cell"]),
        ("setup-2", ["skip-execution"]),
    ]
    assert "[The second](../two/lesson.md) and [The second](../two/lesson.md)" in lesson.source
    assert "[Linear models](../one/lesson.md)" in lesson.source
    assert "```{admonition} Hello\n:class: tip\nLook [here](assets/data.csv).\n```" in lesson.source
    assert "one.md:11: {contents} dropped" in _said(report)
    assert "one.md:5: 'authors' dropped from the front matter" in _said(report)


_BOOKS = {
    "parts": "format: jb-book\nroot: intro\nparts:\n- caption: Basics\n  chapters:\n  - file: a\n    sections:\n"
    "    - file: sub/b\n- caption: More\n  chapters:\n  - glob: more/*\n  - url: https://example.org\n",
    "chapters": "format: jb-book\nroot: intro\nchapters:\n- file: a\n  title: Basics\n  sections:\n  - file: sub/b\n"
    "- file: more/c\n",
    "list": "- file: intro\n- part: Basics\n  chapters:\n  - file: a\n    sections:\n    - file: sub/b\n- part: More\n"
    "  chapters:\n  - file: more/c\n",
    "header": "- file: intro\n- header: Basics\n- file: a\n  sections:\n  - file: sub/b\n- header: More\n"
    "- file: more/c\n",
}


@pytest.mark.parametrize("table", _BOOKS.values(), ids=list(_BOOKS))
def test_a_jupyter_book_keeps_its_order_and_parts(source: Path, courses: Path, table: str) -> None:
    for name in ("intro", "a", "sub/b", "more/c", "unlisted"):
        path = source / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Page {path.stem}\n\nWords of this page.\n")
    (source / "_toc.yml").write_text(table)
    (source / "_config.yml").write_text("title: My book\n")
    _import(source, courses)

    catalog = Catalog(courses, quiet=True)
    catalog.reload()
    outline = catalog.with_drafts.outline("imported", "en")
    assert outline.course.title == "My book"
    assert [entry.slug for entry in outline.lessons] == ["intro", "a", "b", "c"]
    assert [module.title for module in outline.modules][1] == "Basics"


def test_an_existing_folder_is_replaced_only_by_force(source: Path, courses: Path) -> None:
    file = _notebook(source, text_cell("# One\n\nWords."))
    _import(source, courses, file)
    with pytest.raises(CannotImport, match=r"exists; choose another folder with --into, or replace it with --force"):
        _import(source, courses, file)
    _notebook(source, text_cell("# Two\n\nWords."))
    _import(source, courses, file, replace=True)

    assert [lesson.title for lesson in _lessons(courses)] == ["Two"]
    assert [path.name for path in courses.iterdir()] == ["imported"]
    (courses / "imported" / "course.toml").unlink()
    with pytest.raises(CannotImport, match="is not the folder of a course"):
        _import(source, courses, file, replace=True)


def test_nothing_is_written_if_nothing_can_be_imported(source: Path, courses: Path) -> None:
    (source / "bad.ipynb").write_text("{")
    with pytest.raises(CannotImport, match="no document could be imported"):
        _import(source, courses)
    assert not courses.exists() or list(courses.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bad.ipynb", b"{not json", "line 1, column 2 is not JSON"),
        ("nine.ipynb", b'{"nbformat": 9, "cells": []}', "its format is 9"),
        ("list.ipynb", b"[1]", "it has no 'nbformat'"),
        ("cells.ipynb", b'{"nbformat": 4}', "has no list of cells"),
        (
            "source.ipynb",
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 7}]}',
            "source of cell 1 is not text",
        ),
        ("binary.ipynb", b"\xff\xfe\x00", "the byte 0xff at position 0 is not UTF-8"),
        ("deep.ipynb", b"[" * 100_000, "nested too deeply"),
        (
            "r.ipynb",
            b'{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}',
            "its cells are in 'R'",
        ),
        ("empty.md", b"\n", "it is empty"),
        ("long.md", b"word\n\n" * 200_000, "the limit is 1,000,000"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_imported(
    source: Path, courses: Path, name: str, content: bytes, reason: str
) -> None:
    (source / name).write_bytes(content)
    (source / "good.md").write_text("# Good\n\nWords.\n")
    _, report = _import(source, courses)

    assert [lesson.title for lesson in _lessons(courses)] == ["Good"]
    (failure,) = report.failures
    assert failure.place == name
    assert reason in failure.text


def test_links_that_lead_out_of_the_folder_are_not_followed(source: Path, courses: Path) -> None:
    outside = source.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Secret\n")
    (source / "secret.md").symlink_to(outside / "secret.md")
    (source / "folder").symlink_to(outside)
    (source / "secret.txt").symlink_to(outside / "secret.md")
    (source / "good.md").write_text("# Good\n\nWords with a [link](secret.txt) and [more](folder/secret.md).\n")
    _, report = _import(source, courses)

    assert [lesson.title for lesson in _lessons(courses)] == ["Good"]
    assert "Secret" not in "".join(path.read_text() for path in courses.rglob("*") if path.is_file())
    assert [failure.place for failure in report.failures] == ["secret.md"]


def test_hidden_files_are_not_published(source: Path, courses: Path) -> None:
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("url = https://secret@example.org/name\n")
    (source / "shown.txt").symlink_to(".git/config")
    (source / "good.md").write_text("# Good\n\nWords with a [link](.git/config) and [more](shown.txt).\n")
    _, report = _import(source, courses)

    assert "secret" not in "".join(path.read_text() for path in courses.rglob("*") if path.is_file())
    assert sum(change.text.startswith("link removed, its text kept") for change in report.changes) == 2


def test_control_characters_and_half_characters_are_removed(source: Path, courses: Path) -> None:
    file = _notebook(source, text_cell("# One\0\n\nWords \ud800 here\x1b[31m."), code_cell("x = '\0'"))
    lesson, report = _lesson(source, courses, file)

    assert "Words  here[31m." in lesson.source
    assert "first.ipynb, cell 2: 1 control characters removed" in _said(report)


def test_a_large_notebook_is_imported_without_its_outputs(source: Path, courses: Path) -> None:
    file = _notebook(source, text_cell("# Large\n\nWords."), code_cell("print(1)", printed="x" * 20_000_000))
    lesson, _ = _lesson(source, courses, file)

    assert len(lesson.source) < 2_000


def test_scripts_in_outputs_and_the_state_of_widgets_are_dropped_by_name(source: Path, courses: Path) -> None:
    script = "<script>alert('from an output')</script>"
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": [script]}}
    state = {"application/vnd.jupyter.widget-state+json": {"state": {"a-model-id": {"model_name": "IntSliderModel"}}}}
    file = _notebook(
        source,
        text_cell("# Slide\n\nThese are the words of it."),
        code_cell("print(1)") | {"outputs": [output]},
        metadata={"widgets": state},
    )
    _, report = _lesson(source, courses, file)

    assert "first.ipynb: state of widgets dropped" in _said(report)
    assert "first.ipynb: outputs of 1 cell dropped" in _said(report)
    written = "".join(path.read_text() for path in courses.rglob("*") if path.is_file())
    assert [word for word in ("<script", "alert", "a-model-id") if word in written] == []


def test_pointers_of_git_lfs_are_not_taken_for_pictures(source: Path, courses: Path) -> None:
    (source / "a.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    file = _notebook(source, text_cell("# One\n\n![words](a.png) and more."))
    lesson, report = _lesson(source, courses, file)

    assert "words and more." in lesson.source
    assert "only a pointer of Git LFS" in _said(report)


def test_lockstep_reads_its_own_notebooks_back(source: Path, courses: Path) -> None:
    about = {"name": "my-cell", "title": "My cell", "topology": "workers:2", "keras": 3}
    file = _notebook(
        source,
        text_cell("# Mine", id="lockstep-title"),
        code_cell("setup", {"lockstep": {"setup": True}}),
        text_cell("Words of the lesson."),
        code_cell("# Needs workers:2, Keras 3\nprint(1)", {"lockstep": about}),
        metadata={"lockstep": {"title": "Mine", "topology": "gpu:2", "keras": 3}},
    )
    lesson, _ = _lesson(source, courses, file)

    assert (lesson.title, lesson.topology) == ("Mine", "gpu:2")
    assert [(cell.name, cell.title, cell.code) for cell in lesson.cells] == [("my-cell", "My cell", "print(1)")]


def test_modules_that_are_not_installed_are_named_once_with_the_first_cell(source: Path, courses: Path) -> None:
    (source / "helpers.py").write_text("x = 1\n")
    _notebook(
        source,
        code_cell("%matplotlib inline\nimport numpy as np, no_such_one.part as part\nfrom no_such_two import x"),
        code_cell("from no_such_one import y\nimport helpers, tensorflow_hub, zoneinfo"),
        code_cell("%%writefile written.py\nx = 1"),
        code_cell("import written"),
        code_cell("try:\n    import no_such_three\nexcept ImportError:\n    pass\n\ndef f():\n    import no_such_four"),
        code_cell("import no_such_five", metadata={"tags": ["raises-exception"]}),
        code_cell("import no_such_six", metadata={"tags": ["skip-execution"]}),
    )
    _, report = _import(source, courses)

    assert [str(warning) for warning in report.warnings] == [
        f"first.ipynb, cell 1 (the first of 2 cells): imports no_such_one, which is not installed: {NO_MODULE}",
        f"first.ipynb, cell 1: imports no_such_two, which is not installed: {NO_MODULE}",
    ]
    assert report.failures == []


def test_a_package_beside_a_notebook_is_written_by_cells_and_not_named_as_missing(source: Path, courses: Path) -> None:
    for path, text in {
        "part/tools/__init__.py": "",
        "part/tools/plots.py": "from tools.sizes import SIZE\n",
        "part/tools/sizes.py": "SIZE = 3\n",
        "part/tools/deep/more.py": "import shared\n",
        "src/shared/base.py": "x = open('base.txt')\n",
        "part/base.txt": "words\n",
        ".hidden/away/one.py": "secret = 1\n",
    }.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    (source / "part" / "away").symlink_to(source / ".hidden" / "away")
    _notebook(source, text_cell("# Own"), code_cell("from tools.plots import SIZE\nimport away"), name="part/own.ipynb")
    _, report = _import(source, courses)
    (lesson,) = _lessons(courses)

    written = [cell.code.split("\n")[0] for cell in lesson.cells if cell.code.startswith("%%writefile")]
    files = ["base.txt", "shared/base.py", "tools/deep/more.py", "tools/plots.py", "tools/sizes.py"]
    assert sorted(written) == [f"%%writefile {name}" for name in files]
    assert "secret" not in lesson.source
    (warning,) = report.warnings
    assert "imports away, which is not installed" in warning.text


def test_the_files_of_a_package_run_where_they_are_written(
    source: Path, courses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "own_tools").mkdir()
    (source / "own_tools" / "sizes.py").write_text("from .more import SIZE\n")
    (source / "own_tools" / "more.py").write_text("SIZE = 3\n")
    file = _notebook(source, code_cell("from own_tools.sizes import SIZE"))
    lesson, _ = _lesson(source, courses, file)

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    for cell in lesson.cells:
        first, _, rest = cell.code.partition("\n")
        if first.startswith("%%writefile"):
            Path(first.split()[1]).write_text(rest)
        else:
            exec(cell.code, names)
    assert names["SIZE"] == 3


def test_of_a_package_only_what_code_can_import_is_written(source: Path, courses: Path) -> None:
    folder = source / "own_tools"
    for name in ("sizes.py", "it's.py", "with space.py", "a\n:tags: [exercise]\n.py", "b\udcff.py", "q'q/more.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("SIZE = 3\n")
    deep = os.open(folder, os.O_RDONLY)
    for _ in range(1_100):
        os.close(os.open("base.py", os.O_CREAT, dir_fd=deep))
        os.mkdir("d", dir_fd=deep)
        above, deep = deep, os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(above)
    os.close(deep)
    file = _notebook(source, code_cell("import own_tools.sizes"))
    try:
        lesson, report = _lesson(source, courses, file)
    finally:
        subprocess.run(["rm", "-r", folder], check=True)  # pytest cannot delete folders that are so deep

    assert report.failures == []
    assert [cell.code.split("\n")[0] for cell in lesson.cells[1:]] == [
        "%%writefile own_tools/sizes.py",
        "import own_tools.sizes",
    ]


def test_a_package_with_many_files_is_named_as_what_it_is(source: Path, courses: Path) -> None:
    (source / "large_tools").mkdir()
    for number in range(13):
        (source / "large_tools" / f"part_{number}.py").write_text("x = 1\n")
    file = _notebook(source, code_cell("import large_tools.part_1"), code_cell("import large_tools.part_2"))
    lesson, report = _lesson(source, courses, file)

    assert len(lesson.cells) == 2
    assert _said(report).count("'large_tools' beside it has 13 files, and cells write up to 12") == 1
    assert report.warnings == []


def test_modules_that_import_one_another_in_a_long_chain_are_all_found(source: Path, courses: Path) -> None:
    for number in range(1100):
        (source / f"part_{number}.py").write_text(f"import part_{number + 1}\n")
    file = _notebook(source, code_cell("import part_0"))
    _, report = _import(source, courses, file)

    assert "a cell above it writes 'part_1099.py'" in _said(report)
