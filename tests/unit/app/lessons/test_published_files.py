"""Files as QuantEcon, Jupyter Book, Colab and JupyterLab write them load as lessons, without a hand on them.

The files in ``published/`` were written for these tests: each uses what such files use.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from app.exports.notebook import build_notebook
from app.lessons.document import Document, parse_document
from app.lessons.model import Cell, CellTag, Lesson, Prose
from app.lessons.render import render_lesson
from tests.factories.lesson_source import lesson_text

FOLDER = Path(__file__).parent / "published"
BIB = """\
@book{Sargent1987, author = {Sargent, Thomas J.}, title = {Macroeconomic {T}heory}, year = 1987, publisher = {AP}}
@article{Hamilton94,
  author = "James D. Hamilton and Christopher Sims and Jos{\\'e} R{\\"o}mer",
  title = "Time series", journal = {J. of T.}, volume = 3, number = 2, pages = {1--9}, year = {1994}, doi = {10.1/x}
}
@string{ap = "Academic"}
@misc{uncited, title = {Nobody cites me}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "refs.bib").write_text(BIB)
    (assets / "train.py").write_text("import sys\n\nprint('<secret>')\n")
    return tmp_path


def read(name: str, folder: Path) -> tuple[Document, Lesson, str]:
    return read_text((FOLDER / name).read_text(encoding="utf-8"), folder)


def read_text(text: str, folder: Path) -> tuple[Document, Lesson, str]:
    """The document and the lesson of a text, and the HTML of its prose."""
    document = parse_document(text, "en", None, folder)
    assert not [fault for fault in document.faults if not fault.warning], document.faults
    lesson = render_lesson(
        document, course="c", slug="this", languages=("en",), path=folder / "lesson.md", digest="d" * 24
    )
    return document, lesson, "\n".join(str(block.html) for block in lesson.blocks if isinstance(block, Prose))


# --- whole files -----------------------------------------------------------------------------------------------


def test_a_lecture_as_quantecon_writes_it_loads(folder: Path) -> None:
    document, lesson, html = read("lecture.md", folder)

    assert (lesson.title, lesson.minutes) == ("Shocks That Fade", 6)
    assert lesson.summary.startswith("In addition to what's in the base installation")
    assert [heading.id for heading in lesson.toc] == ["overview", "law", "exercises"]
    assert [cell.name for cell in lesson.cells] == [
        "pip-install-quiet-quantlib-demo",
        "import-numpy-as-np",
        "simulate",
        "moments-1-3",
        "print-sum-moments",
    ]
    assert lesson.cells[2].title == "Ten paths of the process"
    assert [CellTag.hide_input in cell.tags for cell in lesson.cells] == [False, False, True, False, True]
    for expected in (
        '(<a href="#cite-Sargent1987">Sargent, 1987</a>)',
        '<a href="#cite-Hamilton94">Hamilton et al. (1994)</a>, unknown_key',
        '<a href="markov-chains">markov_chains</a>',
        '<a href="#law">the law</a>',
        '<a href="#can_ar1">(1)</a>',
        '<div class="math numbered" tabindex="0" id="ar1_ma">',
        '<p class="admonition-title">Theorem (Stability)</p>',
        '<abbr title="independent and identically distributed">IID</abbr>',
        '<a href="#cell-simulate">Ten paths of the process</a>',
        '<a href="#lanes">Figure 1</a>',
        '<span class="caption-number">Figure 1</span>',
        '<th scope="col">Symbol</th>',
        "<td>mean</td>",
        '<dt id="term-stationary">stationary</dt>',
        '<a href="#term-stationary">stationary</a>',
        "Raw HTML is <b>reduced</b>.",
        '<p class="admonition-title">Exercise 1</p>',
        "<summary>Solution to Exercise 1</summary>",
        '<li id="cite-Hamilton94">James D. Hamilton; Christopher Sims; José Römer (1994). <cite>Time series</cite>. '
        'J. of T., 3(2), 1–9. <a href="https://doi.org/10.1/x"',
    ):
        assert expected in html, expected
    for absent in ("Nobody cites me", "/_static", "toctree", "a comment", " style=", "Autoregressive"):
        assert absent not in html
    assert html.count("<details") == html.count("</details>")
    assert html.count("<div") == html.count("</div>")
    lines = {fault.text.partition(";")[0]: fault.line for fault in document.faults}
    assert lines["{raw} is left out"] == 14
    assert lines["no bibliography of this lesson has the work 'unknown_key'"] == 37


def test_an_exercise_or_a_solution_with_only_a_cell_leaves_no_empty_box(folder: Path) -> None:
    cell = "```{code-cell}\n1\n```\n"
    exercise = f"```{{exercise-start}} Add\n:label: add\n```\n{cell}```{{exercise-end}}\n```\n"
    solution = f"```{{solution-start}} add\n```\n{cell}```{{solution-end}}\n```\n"
    _, lesson, html = read_text(lesson_text(f"{exercise}{solution}See {{ref}}`add`.\n\n{solution}Words.\n"), folder)

    assert [block if isinstance(block, Prose) else "cell" for block in lesson.blocks][1::2] == 3 * ["cell"]
    assert "<details" not in html
    assert html.count("<p><strong>Solution to Exercise 1</strong></p>") == 2
    assert html.count('<div class="admonition exercise"') == html.count("</div>") == 1


def test_a_page_as_jupyter_book_writes_it_loads(folder: Path) -> None:
    document, lesson, html = read("book.md", folder)

    assert (lesson.title, lesson.summary) == ("Ship a model", "How a trained model reaches its users.")
    assert [(heading.text, heading.level) for heading in lesson.toc] == [("Too deep", 2), ("A second part", 2)]
    assert [(cell.name, cell.title) for cell in lesson.cells] == [("print-trained", "Train")]
    for expected in (
        '<input type="radio" name="tabs-1" id="tabs-1-1"><label for="tabs-1-1">Linux</label><div class="tab-panel">',
        '<input type="radio" name="tabs-1" id="tabs-1-2" checked><label for="tabs-1-2">Windows</label>',
        "<figcaption>Train: on Windows</figcaption>",
        '<p class="card-heading"><a href="https://example.org/guide" rel="noreferrer">Guide</a></p>',
        '<div class="card-footer">\n<p>Five minutes</p>',
        '<div class="card-header">\n<p>Header</p>',
        '<code class="language-mermaid">graph LR; A --&gt; B</code>',
        '<video controls preload="metadata" src="this/assets/run.mp4" aria-label="A run"></video>',
        '<details class="admonition dropdown">\n<summary>Attention</summary>',
        '<p class="admonition-title">Danger</p>',
        '<div class="admonition tip" role="note" id="colors">',
        '<a href="#colors">Colors</a>',
        '<a href="#script">Listing 1</a>',
        '<a href="this/assets/train.py" download>the script</a>',
        '<a href="#cell-print-trained">Train</a>',
        '<a href="https://example.org/x.png" rel="noreferrer">https://example.org/x.png</a>',
        r"<code>\unknowncommand{x}</code>",
        "nested",
        "println",
    ):
        assert expected in html, expected
    assert "secret" not in html
    words = " ".join(fault.text for fault in document.faults)
    for warned in ("unknown directive {iframe}", "unknown role {octicon}", "a lesson has one title", "footnote 'gone'"):
        assert warned in words


def test_a_notebook_from_colab_loads(folder: Path) -> None:
    cells = [
        new_markdown_cell(
            '<a href="https://colab.research.google.com/x"><img src="https://colab.research.google.com/badge.svg"></a>',
            metadata={"id": "view-in-github", "colab_type": "text"},
        ),
        new_markdown_cell("# Digits\n\nTrain a *small* network.", metadata={"id": "aB3"}),
        new_code_cell(
            '#@title Load the data { display-mode: "form" }\nx = 1',
            metadata={
                "id": "qZ",
                "cellView": "form",
                "colab": {"base_uri": "https://localhost:8080/"},
                "outputId": "7f",
            },
        ),
        new_code_cell("%%bash\necho hi", metadata={"executionInfo": {"elapsed": 4, "user": {"displayName": "A: B"}}}),
        new_code_cell("print(x", metadata={"scrolled": True, "tags": ["remove-input", "my-own-tag"]}),
        new_code_cell("", metadata={"id": "end"}),
    ]
    metadata = {
        "accelerator": "GPU",
        "colab": {"provenance": []},
        "kernelspec": {"name": "python3", "display_name": "P"},
    }
    notebook = new_notebook(cells=cells, metadata=metadata)
    text = jupytext.writes(notebook, fmt="md:myst")
    document = parse_document(text, "en")

    assert not [fault for fault in document.faults if fault.blocks]
    assert [fault.text.partition(":")[0] for fault in document.faults if not fault.warning] == [
        "the cell 'print-x' is not Python"
    ]
    lesson = render_lesson(document, course="c", slug="s", languages=("en",), path=folder / "lesson.md", digest="d")
    assert (lesson.title, lesson.summary) == ("Digits", "Train a small network.")
    assert [cell.name for cell in lesson.cells] == ["load-the-data-display-mode", "bash", "print-x", "cell"]
    assert [cell.name for cell in lesson.shown_cells] == ["load-the-data-display-mode", "bash", "print-x"]
    assert lesson.cells[2].tags == {CellTag.hide_input}


@pytest.mark.parametrize("name", ["lecture.md", "book.md"])
def test_a_published_file_becomes_a_plain_notebook(name: str, folder: Path) -> None:
    _, lesson, _ = read(name, folder)
    made = build_notebook(lesson, "https://example.org/en/courses/c/this")

    nbformat.validate(made)
    text = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert not re.search(r"^(?:`{3,}|:{3,})\{", text, re.MULTILINE)
    assert "{ref}" not in text
    assert len([cell for cell in made.cells if cell.cell_type == "code"]) == len(lesson.cells) + 1


def test_the_title_may_come_below_a_copyright_notice(folder: Path) -> None:
    text = (
        "##### Copyright\n\n```{code-cell}\n#@title License\n1\n```\n\n# Digits\n\nWords.\n\n# More\n\n## Even more\n"
    )
    _, lesson, _ = read_text(text, folder)

    assert lesson.title == "Digits"
    assert [(heading.text, heading.level) for heading in lesson.toc] == [
        ("Copyright", 2),
        ("More", 2),
        ("Even more", 3),
    ]


def test_a_directive_with_a_title_and_a_label_is_labeled_once(folder: Path) -> None:
    body = (
        "```{exercise} A title\n:label: first\n\nDo.\n```\n\n```{table} Sums\n:name: sums\n\n| a |\n|---|\n| 1 |\n```\n"
    )
    document, _, html = read_text(lesson_text(f"{body}\n{{ref}}`first`, {{numref}}`sums`\n"), folder)

    assert document.faults == ()
    assert '<a href="#first">Exercise 1</a>, <a href="#sums">Table 1</a>' in html
    assert html.count('id="first"') == html.count('id="sums"') == 1


@pytest.mark.parametrize(
    "latex",
    [
        r"\begin{align} a &= b \end{align}",
        r"\begin{equation}\label{x} \begin{split} a &= b \end{split} \end{equation}",
        r"\begin{pmatrix} 1 & 2 \cr 3 & 4 \end{pmatrix}",
        r"\mbox{loss} = \color{red}{\widetilde{x}} \nonumber",
    ],
)
def test_latex_of_lectures_is_a_formula(latex: str, folder: Path) -> None:
    document, _, html = read_text(lesson_text(f"$$\n{latex}\n$$\n"), folder)

    assert document.faults == ()
    assert "<math" in html
    assert " style=" not in html


def test_a_shell_command_on_several_lines_is_python_enough(folder: Path) -> None:
    body = "```{code-cell}\n:name: one\n\n!wget https://example.org \\\n    -O data\nx = 1\n```\n"
    document, _, _ = read_text(lesson_text(body), folder)

    assert document.faults == ()


@pytest.mark.parametrize(
    ("tags", "known"),
    [
        ("hide-cell", {CellTag.hide_input}),
        ("remove-input", {CellTag.hide_input}),
        ("hide-output", set()),
        ("remove-output", set()),
        ("remove-cell", {CellTag.remove_cell}),
    ],
)
def test_tags_of_jupyter_book_hide_code_and_never_what_a_learner_runs_to_see(
    tags: str, known: set[CellTag], folder: Path
) -> None:
    body = f"Words.\n\n```{{code-cell}}\n:name: one\n:tags: [{tags}]\n\nprint(1)\n```\n"
    document, lesson, _ = read_text(lesson_text(body), folder)

    assert document.faults == ()
    assert lesson.cells[0].tags == known


def test_a_role_that_only_an_index_needs_is_its_words(folder: Path) -> None:
    document, _, html = read_text(lesson_text("An {index}`all-reduce <single: all-reduce; ring>` sums.\n"), folder)

    assert document.faults == ()
    assert "<p>An all-reduce sums.</p>" in html


# --- names of cells --------------------------------------------------------------------------------------------


def _names(*codes: str) -> list[str]:
    body = "".join(f"```{{code-cell}} python\n{code}\n```\n\n" for code in codes)
    return [cell.name for cell in parse_document(lesson_text(body), "en").cells]


def test_a_cell_is_called_by_its_first_comment_or_its_first_statement() -> None:
    assert _names("\n# Plot the *result*, now\nplot()", "@tf.function\ndef train_step(x):\n    return x", "x = 1") == [
        "plot-the-result-now",
        "train-step",
        "x-1",
    ]
    assert _names("한국 = 1", "'''\n'''", "%%time\nfit(model)") == ["cell", "cell-2", "time"]


def test_a_cell_keeps_its_name_when_others_change() -> None:
    before = _names("a = 1", "b = 2", "c = 3")

    assert _names("a = 1", "# new\nd = 4", "b = 2\nb += 1", "c = 3") == [before[0], "new", *before[1:]]


def test_equal_names_are_numbered_and_written_ones_win() -> None:
    body = "```{code-cell}\nfit()\n```\n```{code-cell}\nfit()\n```\n```{code-cell}\n:name: fit\n\nother()\n```\n"

    assert [cell.name for cell in parse_document(lesson_text(body), "en").cells] == ["fit-2", "fit-3", "fit"]


def test_a_translation_takes_the_names_of_the_english_cells() -> None:
    english = parse_document(lesson_text("```{code-cell}\n# Say hi\nprint(1)\n```\n"), "en")
    korean = parse_document("# 수업\n\n```{code-cell}\n# 인사\nprint(1)\n```\n", "ko", english)

    assert [cell.name for cell in korean.cells] == ["say-hi"]
    assert not [fault for fault in korean.faults if not fault.warning]


# --- what would mislead a learner is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("```{exersise} T\n:label: x\n```\n", "did you mean 'exercise'?"),
        ("```{code-cell} python\n:expct: 4\n\nprint(4)\n```\n", "did you mean 'expect'?"),
        (
            "```{code-cell} python\n:name: mine\n:tags: [exercise]\n\n"
            "### BEGIN SOLUTION\n#: y\nx\n### END SOLUTION\n```\n"
            "```{solution} mime\nThe answer.\n```\n",
            "which is not an exercise; use one of mine",
        ),
    ],
)
def test_a_misspelled_exercise_or_check_is_an_error(body: str, words: str) -> None:
    blocking = [fault.text for fault in parse_document(lesson_text(body), "en").faults if fault.blocks]

    assert [text for text in blocking if words in text]


# --- files beside the lesson -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "checks.py",
        "CHECKS.py",
        "wrong/one.py",
        "lesson.ko.md",
        ".env",
        "assets/../checks.py",
        "../outside.py",
        "/etc/passwd",
        "link.py",
        "assets/out.py",
        "big.py",
        "binary.py",
        "assets",
        "none.py",
    ],
)
@pytest.mark.parametrize("directive", ["literalinclude", "include", "bibliography"])
def test_a_lesson_cannot_include_what_learners_must_not_see(directive: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "lesson"
    (folder / "wrong").mkdir(parents=True)
    (folder / "assets").mkdir()
    for path in ("checks.py", "CHECKS.py", "wrong/one.py", "lesson.ko.md", ".env", "../outside.py"):
        (folder / path).write_text("@book{SECRET, title = {SECRET}}\nSECRET = 1\n")
    (folder / "link.py").symlink_to(folder / "checks.py")
    (folder / "assets" / "out.py").symlink_to(tmp_path / "outside.py")
    (folder / "big.py").write_text("SECRET " * 100_000)
    (folder / "binary.py").write_bytes(b"SECRET \xff")
    document, _, html = read_text(lesson_text(f"Words.\n\n```{{{directive}}} {name}\n:all:\n```\n"), folder)

    assert "SECRET" not in html
    assert [fault.line for fault in document.faults if "the file '" in fault.text] == [9]


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Again.\n\n" + "```{include} a.md\n```\n\n" * 20)
    document = parse_document(lesson_text("```{include} a.md\n```\n"), "en", None, tmp_path)

    assert [fault for fault in document.faults if "at most 50 files" in fault.text or "too deeply" in fault.text]


def test_an_included_file_shows_its_text_and_names_itself_in_warnings(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("```{tip}\nFrom a *file*.\n```\n\n{nope}`x`\n\n```{strange}\nWords.\n```\n")
    document, _, html = read_text(lesson_text("Words.\n\n```{include} note.md\n```\n"), tmp_path)

    assert "<p>From a <em>file</em>.</p>" in html
    assert "<p>Words.</p>" in html
    assert {fault.line for fault in document.faults} == {9}
    assert [fault for fault in document.faults if fault.text.startswith("line 7 of 'note.md': unknown directive")]


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "javascript:alert(1)",
        "<b onclick=alert(1)>x</b>",
        '<a href="javascript:alert(1)">x</a>',
        '<a href="https://x.example" onclick="alert(1)">x</a>',
    ],
)
def test_nothing_that_an_author_writes_becomes_a_script(evil: str, tmp_path: Path) -> None:
    (tmp_path / "x.bib").write_text(f"@misc{{k, title = {{{evil}}}, author = {{{evil}}}, url = {{{evil}}}}}\n")
    body = (
        f"{evil}\n\nText {evil} {{ref}}`{evil} <x>` {{cite}}`k` {{abbr}}`x ({evil})` {{doc}}`{evil}`\n\n"
        f"```{{figure}} {evil}\n:alt: {evil}\n:name: {evil}\n:width: {evil}\n```\n\n"
        f"```{{video}} {evil}\n:alt: {evil}\n```\n\n```{{card}} {evil}\n:link: {evil}\n:footer: {evil}\n```\n\n"
        f"````{{tab-set}}\n```{{tab-item}} {evil}\n```\n````\n\n```{{code-block}} {evil}\n:caption: {evil}\n```\n\n"
        f"```{{prf:{evil}}} {evil}\n:class: {evil}\n```\n\n(x)=\n# {evil}\n\n```{{bibliography}} x.bib\n```\n"
    )
    document = parse_document(lesson_text(body), "en", None, tmp_path)
    lesson = render_lesson(document, course="c", slug="s", languages=("en",), path=tmp_path / "lesson.md", digest="d")
    html = "\n".join(str(getattr(block, "html", "")) for block in lesson.blocks)

    assert "<script" not in html
    assert not re.search(r"<[^>]*\son\w+\s*=", re.sub(r'"[^"]*"', '""', html))
    assert not re.search(r'(?:href|src)="\s*javascript:', html)
    assert not [block for block in lesson.blocks if isinstance(block, Cell)]


GLUED = """
The mean is {glue:text}`boot_mean:.2f`, see {numref}`fig-boot`. {glue:}`lost` is lost.

```{code-cell} ipython3
:name: bootstrap

from myst_nb import glue
glue("boot_mean", 2.5, display=False); glue("boot_sd", 1.5)
# glue("lost", 1)
glue(
    'boot_fig', 1)
```

```{glue:figure} boot_fig
:name: fig-boot

Means of **samples**.
```
"""


def test_a_glued_value_leads_to_the_cell_that_computes_it(folder: Path) -> None:
    document, lesson, html = read_text(lesson_text(GLUED), folder)

    value = '<a href="#cell-bootstrap"><code>boot_{}</code></a>'
    assert f'The mean is {value.format("mean")}, see <a href="#fig-boot">Figure 1</a>.' in html
    caption = '<span class="caption-number">Figure 1</span>'
    assert f'<figure id="fig-boot"><p>{value.format("fig")}</p><figcaption>{caption}' in html
    assert "<p>Means of <strong>samples</strong>.</p>" in html
    (fault,) = document.faults
    assert fault.text == ('no cell of this lesson calls glue("lost", …), so only the name is shown; write the value')
    plain = "\n".join(cell.source for cell in build_notebook(lesson, "https://example.org").cells)
    assert "The mean is `boot_mean`, see [Figure 1](#fig-boot). `lost` is lost." in plain
    assert "`boot_fig`\n\n**Figure 1:** Means of **samples**." in plain
