"""The directives that a lesson may use. The reference in ``docs/teach`` is generated from these texts.

Besides Lockstep's own, these are the directives of MyST, Jupyter Book, sphinx-design, and sphinx-exercise that
published notebooks use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DirectiveKind = Literal[
    "cell",
    "admonition",
    "titled",
    "figure",
    "image",
    "video",
    "glue",
    "math",
    "table",
    "list-table",
    "csv-table",
    "task",
    "gate-start",
    "gate-end",
    "code",
    "literal-include",
    "include",
    "tabs",
    "tab",
    "grid",
    "card",
    "quote",
    "plain",
    "rubric",
    "glossary",
    "bibliography",
    "silent",
    "dropped",
]

ADMONITIONS = (
    "note",
    "tip",
    "hint",
    "important",
    "warning",
    "caution",
    "attention",
    "danger",
    "error",
    "seealso",
)
"""Directives with a title of their own; the argument, if any, is the first paragraph."""
MACHINE_KEYS = ("topology", "topologies", "keras", "kerases")
"""The keys of a front matter or a cell about machines: the default, and the choices for learners."""

JUPYTER_OPTIONS = frozenset(
    {
        "cellView",
        "colab",
        "colab_type",
        "collapsed",
        "deletable",
        "editable",
        "emphasize-lines",
        "ExecuteTime",
        "execution",
        "executionInfo",
        "format",
        "hide_input",
        "id",
        "jupyter",
        "label",
        "linenos",
        "lineno-start",
        "lines_to_next_cell",
        "mystnb",
        "nbgrader",
        "nbsphinx",
        "number-lines",
        "outputId",
        "papermill",
        "pycharm",
        "run_control",
        "scrolled",
        "slideshow",
        "trusted",
        "vscode",
    }
)
"""Cell metadata of JupyterLab, Colab, MyST-NB and other tools, which jupytext turns into options; no effect here."""

LAYOUT_OPTIONS = frozenset(
    {
        "align",
        "animate",
        "class",
        "color",
        "columns",
        "dedent",
        "emphasize-lines",
        "encoding",
        "enumerated",
        "figclass",
        "figwidth",
        "filename",
        "force",
        "gutter",
        "height",
        "hidden",
        "icon",
        "label",
        "linenos",
        "lineno-match",
        "lineno-start",
        "link-alt",
        "link-type",
        "loading",
        "margin",
        "name",
        "nonumber",
        "nowrap",
        "number-lines",
        "outline",
        "padding",
        "reverse",
        "scale",
        "shadow",
        "sync",
        "sync-group",
        "text-align",
        "width",
        "widths",
    }
)
"""Options of any directive that a published notebook may set. Only ``name`` and ``label`` have an effect everywhere."""
LAYOUT_PREFIXES = ("class-", "img-")


@dataclass(frozen=True, slots=True)
class DirectiveSpec:
    """The syntax of a directive."""

    kind: DirectiveKind
    argument: Literal["none", "optional", "required"]
    argument_is: str
    """The argument in a few words."""
    about: str
    """What the directive becomes on the page."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Each option's description."""


_LABEL = {"label": "A name for references, like `:name:`."}
_PICTURE_OPTIONS = {
    "alt": "The alternative text, for readers who cannot see the picture. `lockstep lesson check` asks for it.",
    "width": "The width on the page: a number of pixels, or a percentage such as `50%`.",
}
_CODE_OPTIONS = {"caption": "A caption above the code."}
_TABLE_OPTIONS = {"header-rows": "The number of rows at the top that are headings."}
_SKIPPED = "Left out, with a warning"
_PROOF_KINDS = (
    "algorithm",
    "assumption",
    "axiom",
    "conjecture",
    "corollary",
    "criterion",
    "definition",
    "example",
    "lemma",
    "observation",
    "proof",
    "property",
    "proposition",
    "remark",
    "theorem",
)
"""Of sphinx-proof."""

DIRECTIVE_SPECS: dict[str, DirectiveSpec] = {
    "code-cell": DirectiveSpec(
        "cell",
        "optional",
        "the language, `python` or `ipython3`",
        "A cell that learners can change and run. The body is its code.",
        {
            "name": "Lowercase letters, digits, and hyphens, unique in the lesson. Comments, XP and translations refer "
            "to the cell by its name, so if you change it, write the old one into `was`. Without it, the name comes "
            "from the code, see below.",
            "was": "A former name of the cell, or a list of them: the work that learners stored under it follows."
            " `lesson#name` is its name in another lesson of the course.",
            "caption": "The title above the cell; derived from the name by default.",
            "tags": "A list of tags, see below.",
            "expect": "A text, or a list of texts, that the output has to contain.",
            "topology": "The machine the cell starts on, such as `gpu:4`. Replaces the lesson's.",
            "topologies": "The machines a learner may choose from. Replaces the lesson's.",
            "keras": "`2` or `3`. Replaces the lesson's.",
            "kerases": "The versions of Keras a learner may choose from. Replaces the lesson's.",
            "needs": "Of an exercise: a list of the cells that run before a submission, in this order. "
            "The default is none.",
            "seconds": "Of an exercise: how long the cell, and each call of a check, may take, from 1 to 300. "
            "The default is 30.",
            "xp": "Of an exercise: XP for passing all checks, from 0 to 100, in addition to the XP of each check. "
            "The default is 20.",
            "review": "Of an exercise: `manual` if instructors review each submission that passes the checks. "
            "By default, the checks alone decide.",
        },
    ),
    **{
        name: DirectiveSpec(
            "admonition",
            "optional",
            "the first paragraph",
            "A box with this title, in the lesson's language.",
            {"class": "`dropdown` for a box that opens on a click."},
        )
        for name in ADMONITIONS
    },
    "admonition": DirectiveSpec(
        "titled",
        "required",
        "the title",
        "A box with a title of your own.",
        {"class": "`note`, `tip` or `warning` for the look of that box; `dropdown` for a box that opens on a click."},
    ),
    "dropdown": DirectiveSpec(
        "titled",
        "required",
        "the title",
        "A box that opens on a click, for instance a solution.",
        {"open": "Show the box open."},
    ),
    "margin": DirectiveSpec("titled", "optional", "the title", "A box for a remark beside the text."),
    "sidebar": DirectiveSpec("titled", "optional", "the title", "The same as `{margin}`."),
    "topic": DirectiveSpec("titled", "optional", "the title", "A box with a title of your own."),
    **{
        f"prf:{kind}": DirectiveSpec("titled", "optional", "a name", f"A box with the title “{kind.capitalize()}”.")
        for kind in _PROOF_KINDS
    },
    "figure": DirectiveSpec(
        "figure",
        "required",
        "the path of a file in `assets`",
        "A picture with a caption. The body is the caption. Of a drawing with steps, it ends with a numbered list that "
        "says what each of them shows.",
        _PICTURE_OPTIONS,
    ),
    "image": DirectiveSpec(
        "image", "required", "the path of a file in `assets`", "A picture without a caption.", _PICTURE_OPTIONS
    ),
    "video": DirectiveSpec(
        "video",
        "required",
        "the path of a file in `assets`",
        "A video with controls. The body is the caption.",
        {"alt": "What the video shows, for readers who cannot see it.", "width": _PICTURE_OPTIONS["width"]},
    ),
    **{
        name: DirectiveSpec(
            "glue",
            "required",
            "the name of a value that a cell passes to MyST-NB's `glue`",
            "A link to the cell that computes the value, because the page exists before the cell runs. The body is "
            "the caption.",
            _LABEL,
        )
        for name in ("glue:", "glue:any", "glue:figure", "glue:math", "glue:md", "glue:text")
    },
    "math": DirectiveSpec(
        "math", "optional", "the first line", "A formula on a line of its own. The body is LaTeX.", _LABEL
    ),
    "code-block": DirectiveSpec("code", "optional", "the language", "Code that is only shown.", _CODE_OPTIONS),
    "code": DirectiveSpec("code", "optional", "the language", "The same as `{code-block}`.", _CODE_OPTIONS),
    "sourcecode": DirectiveSpec("code", "optional", "the language", "The same as `{code-block}`.", _CODE_OPTIONS),
    "mermaid": DirectiveSpec("code", "none", "none", "A diagram, shown as its source.", _CODE_OPTIONS),
    "literalinclude": DirectiveSpec(
        "literal-include",
        "required",
        "the path of a file in the lesson's folder",
        "A file, or a part of it, as code that is only shown.",
        {
            **_CODE_OPTIONS,
            "language": "The language.",
            "lines": "The lines to show, such as `1-4,7,10-`.",
            "start-after": "Show what follows the first line that contains this text.",
            "start-at": "Show the first line that contains this text, and what follows.",
            "end-before": "Stop above the first line that contains this text.",
            "end-at": "Stop below the first line that contains this text.",
        },
    ),
    "include": DirectiveSpec(
        "include", "required", "the path of a Markdown file in the lesson's folder", "The text of the file."
    ),
    "table": DirectiveSpec("table", "optional", "the caption", "A table with a caption. The body is a Markdown table."),
    "list-table": DirectiveSpec(
        "list-table",
        "optional",
        "the caption",
        "A table, written as a list of rows, each a list of its cells.",
        _TABLE_OPTIONS,
    ),
    "csv-table": DirectiveSpec(
        "csv-table",
        "optional",
        "the caption",
        "A table, written as comma-separated values.",
        {
            **_TABLE_OPTIONS,
            "header": "The headings, as comma-separated values.",
            "file": "The path of a CSV file in the lesson's folder, instead of the body.",
            "delim": "The character between two values; `,` by default.",
        },
    ),
    "tab-set": DirectiveSpec("tabs", "none", "none", "Tabs. The body is `{tab-item}` directives."),
    "tab-item": DirectiveSpec(
        "tab", "required", "the title", "One of the tabs.", {"selected": "The tab that is open at first."}
    ),
    "grid": DirectiveSpec(
        "grid",
        "optional",
        "the number of columns, which the width of the page decides instead",
        "Cards side by side, or below each other on a phone. The body is `{grid-item}` or `{grid-item-card}` "
        "directives.",
    ),
    "grid-item": DirectiveSpec("card", "none", "none", "An item of a grid, without a frame."),
    **{
        name: DirectiveSpec(
            "card",
            "optional",
            "the title",
            about,
            {
                "header": "A line at the top.",
                "footer": "A line at the bottom.",
                "link": "Where the title leads.",
            },
        )
        for name, about in (
            ("grid-item-card", "An item of a grid, with a frame."),
            ("card", "A box with a frame. A line `^^^` ends its header, and a line `+++` starts its footer."),
        )
    },
    **{
        name: DirectiveSpec("quote", "optional", "the first paragraph", "A quotation.")
        for name in ("epigraph", "pull-quote", "highlights")
    },
    **{
        name: DirectiveSpec("plain", "optional", "a class, without effect", "Its body, as it is.")
        for name in ("container", "div", "compound")
    },
    "rubric": DirectiveSpec("rubric", "required", "the words", "A heading that is not in the table of contents."),
    "glossary": DirectiveSpec(
        "glossary", "none", "none", "Terms and their meanings, as a definition list. `{term}` links to them."
    ),
    "bibliography": DirectiveSpec(
        "bibliography",
        "optional",
        "the path of a .bib file in the lesson's folder; all of its .bib files by default",
        "The works that the lesson cites, from a BibTeX file.",
        {"all": "List the works that are not cited, too."},
    ),
    "exercise": DirectiveSpec(
        "task",
        "optional",
        "a title",
        "The task of an exercise. If it names a cell with the tag `exercise`, it is shown above that cell, and "
        "Lockstep judges the answer. Otherwise it is a numbered box.",
        {"label": "The name of the exercise's cell, which comes later in the lesson; or a name for references."},
    ),
    "solution": DirectiveSpec(
        "task",
        "required",
        "the name of the exercise's cell, or the label of the exercise",
        "What to say about the solution of an exercise. Of an exercise that is judged, learners see it only together "
        "with the solution. Otherwise it is a box that opens on a click.",
        _LABEL,
    ),
    "exercise-start": DirectiveSpec(
        "gate-start", "optional", "a title", "Begins an exercise that is not judged and may contain cells.", _LABEL
    ),
    "exercise-end": DirectiveSpec("gate-end", "none", "none", "Ends the exercise."),
    "solution-start": DirectiveSpec(
        "gate-start",
        "required",
        "the label of the exercise",
        "Begins a solution that may contain cells. Its text opens on a click, and so does the code of its cells.",
        _LABEL,
    ),
    "solution-end": DirectiveSpec("gate-end", "none", "none", "Ends the solution."),
    "index": DirectiveSpec("silent", "optional", "the entries", "Nothing: Lockstep has no index, but a search."),
    **{
        name: DirectiveSpec("dropped", "optional", argument, f"{_SKIPPED}: {reason}.")
        for name, argument, reason in (
            ("raw", "the format", "write Markdown instead"),
            ("toctree", "none", "the lessons of a course are listed in `course.toml`"),
            ("tableofcontents", "none", "pages have a table of contents"),
            ("contents", "none", "pages have a table of contents"),
            ("only", "a format", "write what all readers need"),
        )
    },
    "quiz": DirectiveSpec(
        "task",
        "required",
        "the question",
        "A question with choices. The body is a task list: `- [x]` marks a right choice, `- [ ]` a wrong one, and the "
        "paragraphs below a choice, indented like its text, are its feedback. If several choices are right, learners "
        "may pick several. Markdown above the list belongs to the question.",
        {
            "name": "Lowercase letters, digits, and hyphens, unique in the lesson. Required.",
            "was": "A former name of the quiz, or a list of them: the answers that learners gave follow."
            " `lesson#name` is its name in another lesson of the course.",
        },
    ),
    "predict": DirectiveSpec(
        "task",
        "required",
        "the question",
        "A guess that learners make before they run a cell. The answer is a number (`:answer:`, or `:from:` with "
        "`{number}`), a choice (the body ends with a task list, as in a quiz, with one `- [x]`), or an order (the body "
        "ends with a numbered list in the right order, which learners see shuffled).",
        {
            "name": "Lowercase letters, digits, and hyphens, unique in the lesson. Required.",
            "was": "A former name of the prediction, or a list of them: the answers that learners gave follow."
            " `lesson#name` is its name in another lesson of the course.",
            "cell": "The cell whose run gives the answer; it comes later in the lesson. Required.",
            "answer": "The number.",
            "from": "Text that the run prints. For a number, `{number}` takes its place: `'each sees {number}'`. "
            "For a choice, the text that shows which one is right.",
            "tolerance": "How far off a right number may be: `0.5`, or `5%` of the number. The default is 0.",
            "unit": "What follows the number, such as `ms`.",
        },
    ),
}

LOCKSTEP_DIRECTIVES = ("code-cell", "exercise", "solution", "quiz", "predict")
"""Directives with an effect beyond the page: a misspelled name or option of one of them is an error."""
UNKNOWN_SPEC = DirectiveSpec("titled", "optional", "the title", "The body of a directive that Lockstep does not know.")
