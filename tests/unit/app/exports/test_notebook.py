"""A lesson as a notebook that any Jupyter can open, and that creates its own devices."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from app.errors import RequestTooLarge
from app.exports.latest_runs import CellRun
from app.exports.notebook import build_notebook, dump_notebook
from app.exports.plain_markdown import CellPlaceholder, MarkdownPart, plain_markdown_parts
from app.lessons.catalog import Catalog
from app.lessons.document import parse_document
from app.lessons.render import render_lesson
from runners.wire.protocol import EVENT_ADAPTER
from tests.factories.exercises import SECRETS, write_exercise_lesson
from tests.factories.lesson_source import CELL, FRONT_MATTER, lesson_text, render_body, write_lesson
from tests.factories.shipped_lessons import shipped_catalog

PAGE = "https://example.org/en/courses/course/this"


def _markdown(body: str) -> str:
    (part,) = plain_markdown_parts(lesson_text(body), PAGE)
    assert isinstance(part, MarkdownPart)
    return part.markdown


def test_references_have_the_numbers_of_the_page_and_captions_have_them_too() -> None:
    text = _markdown(
        "{numref}`Figure %s <lanes>`, {numref}`Table %s <cost>`, {eq}`mean`, {ref}`lanes`\n\n$$\na\n$$ (mean)\n\n"
        "```{figure} assets/lanes.svg\n:name: lanes\n:alt: Lanes\n\nFour lanes.\n```\n\n"
        "```{table} What it costs\n:name: cost\n\n| a |\n|---|\n| 1 |\n```\n"
    )

    assert text.startswith("[Figure 1](#lanes), [Table 1](#cost), [(1)](#mean), [Figure 1](#lanes)\n\n$$\na\n$$\n\n(1)")
    assert "![Lanes](attachment:assets-lanes.svg)\n\n**Figure 1:** Four lanes." in text
    assert "**Table 1:** What it costs\n\n| a |" in text


def test_the_notebook_is_valid_and_its_cells_are_those_of_the_lesson() -> None:
    made = build_notebook(render_body(f"# The lesson\n\nWords.\n\n{CELL}"), PAGE)
    again = nbformat.reads(dump_notebook(made), as_version=4)

    nbformat.validate(again)
    assert (again.nbformat, again.nbformat_minor) == (4, 5)
    assert again.metadata.kernelspec.name == "python3"
    assert again.metadata.lockstep.lesson == "course/this"
    assert [cell.id for cell in again.cells[3:]] == ["lockstep-text-1", "cell-one"]
    assert (again.cells[3].source, again.cells[4].source) == ("Words.", "print(1)")
    assert again.cells[4].metadata.lockstep.name == "one"


def test_a_learners_code_and_outputs_take_the_place_of_the_original() -> None:
    event = EVENT_ADAPTER.validate_python({"kind": "text", "seq": 1, "at_ms": 0, "stream": "stdout", "text": "mine\n"})
    two = CELL.replace("one", "two")
    made = build_notebook(render_body(f"{CELL}\n{two}"), PAGE, {"one": CellRun("print('mine')", (event,), 1)})
    mine, original = made.cells[3:]

    assert (mine.source, mine.execution_count) == ("print('mine')", 1)
    assert mine.outputs[0].text == "mine\n"
    assert (original.source, original.execution_count, original.outputs) == ("print(1)", None, [])


def test_one_large_update_of_many_displays_makes_no_huge_notebook() -> None:
    shown = [{"data": {"text/plain": ""}, "display_id": "a"}] * 100
    events: list[dict[str, Any]] = [
        *shown,
        {"data": {"text/plain": "x" * 1_000_000}, "display_id": "a", "update": True},
    ]
    run = [
        EVENT_ADAPTER.validate_python({"kind": "display", "seq": n, "at_ms": 0, **each})
        for n, each in enumerate(events, 1)
    ]

    with pytest.raises(RequestTooLarge, match="Your outputs are too large"):
        build_notebook(render_body(CELL), PAGE, {"one": CellRun("mine", tuple(run), 1)})


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("```{note}\nOne\n\nTwo\n```\n", "> **Note**\n>\n> One\n>\n> Two"),
        (":::{admonition} Why *so*\nBecause.\n:::\n", "> **Why *so***\n>\n> Because."),
        (
            "````{dropdown} A < B\n```{tip}\nYes.\n```\n````\n",
            "<details><summary>A &lt; B</summary>\n\n> **Tip**\n>\n> Yes.\n\n</details>",
        ),
        ("- a\n\n  ```{note}\n  Inside\n  ```\n- b\n", "- a\n\n  > **Note**\n  >\n  > Inside\n- b"),
        ("> ```{math}\n> x^2\n> ```\n", "> $$\n> x^2\n> $$"),
        ("(here)=\n## There\n", '<a id="here"></a>\n## There'),
        ("a {kbd}`<` b {math}`x_1`\n", "a <kbd>&lt;</kbd> b $x_1$"),
        ("[x](../other/lesson.md#y) [z](#w)\n", "[x](https://example.org/en/courses/course/other#y) [z](#w)"),
        (
            "[x](../other/) [y](../other/lesson.md)\n",
            "[x](https://example.org/en/courses/course/other) [y](https://example.org/en/courses/course/other)",
        ),
        ('[x](<../other/lesson.md> "y")\n', '[x](https://example.org/en/courses/course/other "y")'),
        ("[x]( ../other/lesson.md#a\\_b )\n", "[x](https://example.org/en/courses/course/other#a_b )"),
        ("[x](../other/lesson.md#a&amp;b)\n", "[x](https://example.org/en/courses/course/other#a%26b)"),
        ("[x](https://example.org/합) [y](lesson.ko.md#z)\n", "[x](https://example.org/합) [y](#z)"),
        ("[x](../other/lesson.md#합)\n", "[x](https://example.org/en/courses/course/other#%ED%95%A9)"),
        ("[x](../other/lesson.md#%ED%95%A9)\n", "[x](https://example.org/en/courses/course/other#%ED%95%A9)"),
        (
            "| [a](../b/lesson.md) | {kbd}`c` |\n|---|---|\n| d | [e](../f/lesson.md) |\n",
            "| [a](https://example.org/en/courses/course/b) | <kbd>c</kbd> |\n|---|---|\n"
            "| d | [e](https://example.org/en/courses/course/f) |",
        ),
        ("% secret\n\nWords.\n\n+++\n\nMore.\n", "Words.\n\n\nMore."),
        ("```python\n{kbd}`x` [x](../y/lesson.md)\n```\n", "```python\n{kbd}`x` [x](../y/lesson.md)\n```"),
        ("```{figure} assets/x.png\n:alt: A [b]\n\nWords.\n```\n", "![A \\[b\\]](attachment:assets-x.png)\n\nWords."),
        ("```{table} T\n| a |\n|---|\n```\n", "**T**\n\n| a |\n|---|"),
    ],
)
def test_directives_become_plain_markdown(source: str, plain: str) -> None:
    assert _markdown(source) == plain


def test_every_cell_has_its_place_between_the_texts() -> None:
    parts = plain_markdown_parts(lesson_text(f"{CELL}\nWords.\n\n{CELL}{CELL}"), PAGE)

    assert [type(part) for part in parts] == [CellPlaceholder, MarkdownPart, CellPlaceholder, CellPlaceholder]


def test_pictures_travel_inside_the_notebook(tmp_path: Path) -> None:
    path = write_lesson(tmp_path / "this", "![A](assets/x.png)\n")
    (path.parent / "assets").mkdir()
    (path.parent / "assets" / "x.png").write_bytes(b"png")
    document = parse_document(path.read_text(), "en")
    lesson = render_lesson(document, course="course", slug="this", languages=("en",), path=path, digest="d")

    cell = build_notebook(lesson, PAGE).cells[3]

    assert cell.source == "![A](attachment:assets-x.png)"
    assert cell.attachments == {"assets-x.png": {"image/png": "cG5n"}}


def test_drawings_in_a_notebook_have_colors_that_every_program_knows(tmp_path: Path) -> None:
    path = write_lesson(tmp_path / "this", "![A](assets/x.svg)\n")
    (path.parent / "assets").mkdir()
    drawn = '<svg class="drawing"><rect fill="{}" stroke="{}"/></svg>'
    (path.parent / "assets" / "x.svg").write_text(drawn.format("var(--r0, #0072b2)", "var(--line,none)"))
    document = parse_document(path.read_text(), "en")
    lesson = render_lesson(document, course="course", slug="this", languages=("en",), path=path, digest="d")

    (picture,) = build_notebook(lesson, PAGE).cells[3].attachments["assets-x.svg"].values()

    assert base64.b64decode(picture).decode() == drawn.format("#0072b2", "none")


def test_words_in_other_scripts_are_written_as_they_are() -> None:
    assert "한국어" in dump_notebook(build_notebook(render_body("한국어\n"), PAGE))


@pytest.mark.parametrize(
    ("topology", "keras", "words", "code"),
    [
        ("gpu:4", 3, "4 simulated GPUs", "REPLICAS = 4"),
        ("gpu:1", 3, "1 simulated GPU:", "REPLICAS = 1"),
        ("cpu", 3, "runs on one CPU", "set_visible_devices"),
        ("gpu:2", 2, "2 simulated GPUs", 'os.environ["TF_USE_LEGACY_KERAS"] = "1"'),
    ],
)
def test_the_first_cells_say_what_the_machine_is_and_make_it(topology: str, keras: int, words: str, code: str) -> None:
    made = build_notebook(replace(render_body("Words.\n"), topology=topology, keras=keras), PAGE)

    assert words in made.cells[1].source
    assert code in made.cells[2].source
    compile(made.cells[2].source, "setup", "exec")


def test_cells_with_a_machine_of_their_own_are_named() -> None:
    body = CELL + CELL.replace(":name: one", ":name: two\n:topology: cpu")

    note = build_notebook(render_body(body, header=FRONT_MATTER + "topology: gpu:2\n"), PAGE).cells[1].source

    assert "`two` (1 CPU, Keras 3)" in note
    assert "`one`" not in note


@pytest.mark.parametrize(
    ("topology", "language", "words"),
    [
        ("cpu", "en", "runs on one CPU."),
        ("gpu:1", "en", "runs on 1 simulated GPU: "),
        ("tpu:8", "en", "runs on this machine: TPU with 8 cores, simulated. To run the cells, install the kernel"),
        ("workers:2xgpu:2", "en", "this machine: 2 workers with 2 GPUs each, simulated. "),
        ("workers:2", "en", "“Lockstep, 2 simulated workers” with “lockstep kernelspec install --topology workers:2”"),
        ("ps:2+1", "en", "this machine: 2 workers and 1 parameter server, simulated. "),
        ("ps:2+1", "ko", "“lockstep kernelspec install --topology ps:2+1”"),
        ("workers:2", "zh", "“lockstep kernelspec install --topology workers:2”"),
    ],
)
def test_the_note_is_in_words_for_every_machine(topology: str, language: str, words: str) -> None:
    note = (
        build_notebook(render_body(CELL, header=f"{FRONT_MATTER}topology: {topology}\n", language=language), PAGE)
        .cells[1]
        .source
    )

    assert words in note


def test_the_line_that_names_a_machine_stays_below_a_cells_magic() -> None:
    cell = CELL.replace("print(1)", "%%time\nprint(1)")
    made = build_notebook(render_body(cell, header=FRONT_MATTER + "topology: workers:2\n"), PAGE)

    assert made.cells[3].source == "%%time\n# Needs workers:2, Keras 3\nprint(1)"


def test_code_with_lockstep_helpers_runs_where_there_is_no_lockstep() -> None:
    code = """import lockstep
for step in lockstep.progress(range(2), label="x"):
    lockstep.log(step, loss=0.5 / (step + 1))
with lockstep.replay("kernel"):
    lockstep.shards([1])
lockstep.placement(1)
lockstep.kill(1, at_step=3)"""
    lesson = render_body(CELL.replace("print(1)", code))
    setup, cell = (cell.source for cell in build_notebook(lesson, PAGE).cells[2:4])

    stand_ins = setup.partition("# Lockstep's helpers")[2]
    here = subprocess.run(
        [sys.executable, "-I", "-c", "#" + stand_ins + "\n" + cell], capture_output=True, text=True, check=False
    )

    assert here.stderr == ""
    assert here.stdout.splitlines()[:2] == ["step 0: loss = 0.5", "step 1: loss = 0.25"]
    assert here.stdout.count("see the lesson's page") == 3
    assert "import sys" not in build_notebook(render_body(CELL), PAGE).cells[2].source


@pytest.mark.long
def test_a_strategy_in_plain_python_finds_the_devices_that_the_notebook_makes() -> None:
    body = CELL.replace(
        "print(1)", "import tensorflow as tf\nprint('Replicas:', tf.distribute.MirroredStrategy().num_replicas_in_sync)"
    )
    made = build_notebook(render_body(body, header=FRONT_MATTER + "topology: gpu:3\n"), PAGE)
    script = "\n".join(cell.source for cell in made.cells if cell.cell_type == "code")

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert "Replicas: 3" in done.stdout, done.stderr
    assert json.loads(dump_notebook(made))["cells"][2]["source"]


def test_an_exercise_is_its_task_and_its_starter_and_questions_are_text(tmp_path: Path) -> None:
    write_exercise_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    made = build_notebook(catalog.lesson("course", "one", "en"), PAGE)
    text = dump_notebook(made)

    assert not [secret for secret in SECRETS if secret in text]
    cells = {cell.id: cell for cell in made.cells}
    assert cells["cell-mean"].source.startswith("def mean(values):\n    # Divide by what?\n    return sum(values)\n")
    assert cells["cell-mean"].metadata.tags == ["exercise", "raises-exception"]
    prose = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert "> **Exercise: Write the *mean***\n>\n> Divide by the number of examples, as in $x / n$." in prose
    assert "> **Question: What *divides*?**\n>\n> Think of a batch.\n>\n> ```python\n> batch = 4\n" in prose
    assert "> - [ ] The number of replicas\n> - [ ] The number of `examples`" in prose
    assert "> **Predict: Which number?**" in prose
    assert prose.count("> - Forward") == 1


def test_a_name_before_a_title_has_the_colon_of_its_language() -> None:
    lesson = shipped_catalog().lesson("distributed-tensorflow", "gradient-by-hand", "zh")
    exercise = lesson.exercises[0].exercise
    assert exercise is not None
    assert exercise.task.startswith('<p class="admonition-title">练习：')
    assert "> **练习：" in dump_notebook(build_notebook(lesson, PAGE))


def test_the_code_of_an_exported_exercise_runs_from_top_to_bottom(tmp_path: Path) -> None:
    write_exercise_lesson(tmp_path)
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    made = build_notebook(catalog.lesson("course", "one", "en"), PAGE)
    code = [cell.source for cell in made.cells if cell.cell_type == "code" and cell.id != "lockstep-devices"]

    ran = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("9.0\nit prints 7\n", "")
