"""The directives that a lesson may use, and the parsing of their options.

A directive is a fence whose info string is ``{name} argument``. Its body may start with options: lines of
``:key: value``, or YAML between two lines of ``---``. Both are parsed as jupytext does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.lessons.yaml_with_lines import InvalidYaml, YamlEntry, parse_yaml_mapping

_INFO_STRING = re.compile(r"\{([^}]*)\}[ \t]*(.*)", re.DOTALL)

ADMONITIONS = ("note", "tip", "hint", "important", "warning", "caution", "seealso")
"""Directives with a title of their own; the argument, if any, is the first paragraph."""
MACHINE_KEYS = ("topology", "topologies", "keras", "kerases")
"""The keys of a front matter or a cell about machines: the default, and the choices for learners."""

JUPYTER_OPTIONS = frozenset({"deletable", "editable", "format", "jupyter", "slideshow", "vscode"})
"""Cell metadata that Jupyter's front ends write and jupytext turns into options; ignored here."""


@dataclass(frozen=True, slots=True)
class DirectiveSpec:
    """The syntax of a directive. The reference in ``docs/teach`` is generated from these texts."""

    kind: Literal["cell", "admonition", "titled", "figure", "image", "math", "table", "task"]
    argument: Literal["none", "optional", "required"]
    argument_is: str
    """The argument in a few words."""
    about: str
    """What the directive becomes on the page."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Each option's description."""


_PICTURE_OPTIONS = {
    "alt": "The alternative text, for readers who cannot see the picture. Required.",
    "width": "The width on the page, as a whole number of pixels.",
}

DIRECTIVE_SPECS: dict[str, DirectiveSpec] = {
    "code-cell": DirectiveSpec(
        "cell",
        "optional",
        "the language, `python` or `ipython3`",
        "A cell that learners can change and run. The body is its code.",
        {
            "name": "Lowercase letters, digits, and hyphens, unique in the lesson. Required. Comments, XP and "
            "translations refer to the cell by its name, so don't change it later.",
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
        },
    ),
    **{
        name: DirectiveSpec(
            "admonition", "optional", "the first paragraph", "A box with this title, in the lesson's language."
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
        "titled", "required", "the title", "A box that opens on a click, for instance a solution."
    ),
    "figure": DirectiveSpec(
        "figure",
        "required",
        "the path of a file in `assets`",
        "A picture with a caption. The body is the caption.",
        _PICTURE_OPTIONS,
    ),
    "image": DirectiveSpec(
        "image", "required", "the path of a file in `assets`", "A picture without a caption.", _PICTURE_OPTIONS
    ),
    "math": DirectiveSpec("math", "none", "none", "A formula on a line of its own. The body is LaTeX."),
    "table": DirectiveSpec("table", "optional", "the caption", "A table with a caption. The body is a Markdown table."),
    "exercise": DirectiveSpec(
        "task",
        "required",
        "a title",
        "The task of an exercise, shown above its cell. The body is Markdown.",
        {"label": "The name of the exercise's cell, which comes later in the lesson. Required."},
    ),
    "solution": DirectiveSpec(
        "task",
        "required",
        "the name of the exercise's cell",
        "What to say about the solution of an exercise. Learners see it only together with the solution.",
    ),
    "quiz": DirectiveSpec(
        "task",
        "required",
        "the question",
        "A question with choices. The body is a task list: `- [x]` marks a right choice, `- [ ]` a wrong one, and the "
        "paragraphs below a choice, indented like its text, are its feedback. If several choices are right, learners "
        "may pick several. Markdown above the list belongs to the question.",
        {"name": "Lowercase letters, digits, and hyphens, unique in the lesson. Required. Don't change it later."},
    ),
    "predict": DirectiveSpec(
        "task",
        "required",
        "the question",
        "A guess that learners make before they run a cell. The answer is a number (`:answer:`, or `:from:` with "
        "`{number}`), a choice (the body ends with a task list, as in a quiz, with one `- [x]`), or an order (the body "
        "ends with a numbered list in the right order, which learners see shuffled).",
        {
            "name": "Lowercase letters, digits, and hyphens, unique in the lesson. Required. Don't change it later.",
            "cell": "The cell whose run gives the answer; it comes later in the lesson. Required.",
            "answer": "The number.",
            "from": "Text that the run prints. For a number, `{number}` takes its place: `'each sees {number}'`. "
            "For a choice, the text that shows which one is right.",
            "tolerance": "How far off a right number may be: `0.5`, or `5%` of the number. The default is 0.",
            "unit": "What follows the number, such as `ms`.",
        },
    ),
}


@dataclass(frozen=True, slots=True)
class LessonError:
    """An error in a file that is not known yet. Lines count from 1."""

    line: int
    text: str
    blocks: bool = True


@dataclass(slots=True)
class Directive:
    """A directive in a source. Lines count from 1."""

    name: str
    argument: str
    options: dict[str, YamlEntry]
    body: str
    line: int
    """The line of the opening fence."""
    body_line: int
    """The first line of the body, after the options."""
    end_line: int
    """The line of the closing fence."""
    markup: str
    faults: list[LessonError] = field(default_factory=list)

    @property
    def spec(self) -> DirectiveSpec | None:
        """The directive's syntax; None if the directive is unknown."""
        return DIRECTIVE_SPECS.get(self.name)

    def option(self, key: str) -> str:
        """The option's text, or an empty string."""
        entry = self.options.get(key)
        return entry.text if entry else ""


def parse_directive(info: str, content: str, first_line: int, end_line: int, markup: str) -> Directive | None:
    """Parse a fence as a directive; None if its info string is not one. ``first_line`` is the fence's line, from 1."""
    match = _INFO_STRING.fullmatch(info.strip())
    if match is None:
        return None
    name, argument = match[1].strip(), match[2].strip()
    lines = content.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    options, used, faults = _split_options(lines, first_line + 1)
    body = "\n".join(lines[used:])
    directive = Directive(name, argument, options, body, first_line, first_line + 1 + used, end_line, markup, faults)
    directive.faults += list(_usage_errors(directive))
    return directive


def _split_options(lines: list[str], line: int) -> tuple[dict[str, YamlEntry], int, list[LessonError]]:
    """Return the options, the number of lines they take, and their errors."""
    if lines and lines[0].startswith("---"):
        end = next((i for i, text in enumerate(lines[1:], 1) if text.startswith("---")), len(lines))
        text, used, at = "\n".join(lines[1:end]), min(end + 1, len(lines)), line + 1
    else:
        used = next((i for i, text in enumerate(lines) if not text.lstrip().startswith(":")), len(lines))
        text, at = "\n".join(row.lstrip()[1:] for row in lines[:used]), line
    if used < len(lines) and used and not lines[used].strip():
        used += 1  # one blank line may separate the options from the body
    try:
        entries, repeated = parse_yaml_mapping(text, at)
    except InvalidYaml as e:
        hint = "write each option as ':key: value'" if not lines[0].startswith("---") else "write it as 'key: value'"
        return {}, used, [LessonError(e.line, f"the options cannot be read: {e.reason}; {hint}")]
    faults = [LessonError(entry.line, f"the option '{key}' is given twice; keep one") for key, entry in repeated]
    return entries, used, faults


def _usage_errors(directive: Directive) -> Iterable[LessonError]:
    spec = directive.spec
    if spec is None:
        yield LessonError(
            directive.line, f"unknown directive {{{directive.name}}}; use one of {_sorted_names(DIRECTIVE_SPECS)}"
        )
        return
    if spec.argument == "none" and directive.argument:
        yield LessonError(
            directive.line, f"{{{directive.name}}} takes no argument; put {directive.argument!r} on the line below"
        )
    if spec.argument == "required" and not directive.argument:
        wanted = {"figure": "the path of a file in assets/", "image": "the path of a file in assets/"}.get(
            spec.kind, spec.argument_is.replace("the title", "a title")
        )
        yield LessonError(directive.line, f"{{{directive.name}}} needs {wanted} after its name")
    for key, entry in directive.options.items():
        if key not in spec.options and not (spec.kind == "cell" and key in JUPYTER_OPTIONS):
            known = f"use one of {_sorted_names(spec.options)}" if spec.options else "it takes none"
            yield LessonError(entry.line, f"unknown option '{key}' of {{{directive.name}}}; {known}")


def _sorted_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
