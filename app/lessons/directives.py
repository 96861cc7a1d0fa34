"""The parsing of directives: their names, arguments, and options.

A directive is a fence whose info string is ``{name} argument``. Its body may start with options: lines of
``:key: value``, or YAML between two lines of ``---``. Both are parsed as jupytext does.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.lessons.directive_specs import (
    DIRECTIVE_SPECS,
    JUPYTER_OPTIONS,
    LAYOUT_OPTIONS,
    LAYOUT_PREFIXES,
    LOCKSTEP_DIRECTIVES,
    UNKNOWN_SPEC,
    DirectiveSpec,
)
from app.lessons.yaml_with_lines import InvalidYaml, YamlEntry, parse_yaml_mapping, unquoted_colon

_INFO_STRING = re.compile(r"\{([^}]*)\}[ \t]*(.*)", re.DOTALL)
_OPTION_LINE = re.compile(r"[ \t]*:(?P<key>[A-Za-z][\w.+-]*):(?:[ \t]+(?P<value>.*)|[ \t]*)$")
_PLAIN_LINE = re.compile(r"([a-z][a-z-]*):[ \t]+\S.*")
_SIMILAR = 0.75
"""How similar an unknown word has to be to a known one to be a misspelling of it, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class LessonError:
    """An error in a file that is not known yet. Lines count from 1.

    A ``warning`` never blocks: the page shows something reasonable, and ``lockstep lesson check`` succeeds.
    """

    line: int
    text: str
    blocks: bool = True
    warning: bool = False


def lesson_warning(line: int, text: str) -> LessonError:
    return LessonError(line, text, blocks=False, warning=True)


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
    def spec(self) -> DirectiveSpec:
        """The directive's syntax; ``UNKNOWN_SPEC`` if the directive is unknown."""
        return DIRECTIVE_SPECS.get(self.name, UNKNOWN_SPEC)

    def option(self, key: str) -> str:
        """The option's text, or an empty string."""
        entry = self.options.get(key)
        return entry.text if entry else ""

    @property
    def label(self) -> str:
        """The name by which the text may refer to the directive; empty if it has none."""
        return self.option("label") or self.option("name")

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.option("class").replace(",", " ").split())


def parse_directive(info: str, content: str, first_line: int, end_line: int, markup: str) -> Directive | None:
    """Parse a fence as a directive; None if its info string is not one. ``first_line`` is the fence's line, from 1."""
    match = _INFO_STRING.fullmatch(info.strip())
    if match is None:
        return None
    name, argument = match[1].strip(), match[2].strip()
    if name.lower() in DIRECTIVE_SPECS:  # as Sphinx reads names
        name = name.lower()
    lines = content.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    options, used, faults = _split_options(lines, first_line + 1, strict=name in LOCKSTEP_DIRECTIVES)
    body = "\n".join(lines[used:])
    directive = Directive(name, argument, options, body, first_line, first_line + 1 + used, end_line, markup, faults)
    directive.faults += list(_usage_errors(directive))
    return directive


def _split_options(lines: list[str], line: int, *, strict: bool) -> tuple[dict[str, YamlEntry], int, list[LessonError]]:
    """Return the options, the number of lines they take, and their errors. If not ``strict``, values may be no YAML."""
    dashes = bool(lines) and lines[0].startswith("---")
    if dashes:
        end = next((i for i, text in enumerate(lines[1:], 1) if text.startswith("---")), len(lines))
        text, used, at = "\n".join(lines[1:end]), min(end + 1, len(lines)), line + 1
    else:
        used = next((i for i, text in enumerate(lines) if not _may_be_option(text, strict=strict)), len(lines))
        text, at = "\n".join(row.lstrip()[1:] for row in lines[:used]), line
    given = lines[:used]
    if used < len(lines) and used and not lines[used].strip():
        used += 1  # one blank line may separate the options from the body
    try:
        entries, repeated = parse_yaml_mapping(text, at)
    except InvalidYaml as e:
        if not strict and not dashes:
            return _plain_options(given, line), used, []
        rows = text.split("\n")
        row = rows[e.line - at] if e.line - at < len(rows) else ""
        hint = "write it as 'key: value'" if dashes else "write each option as ':key: value'"
        reason = f"the options cannot be read: {e.reason}; {hint}"
        problem = unquoted_colon(row, "" if dashes else ":") or reason
        return _readable_options(rows, at), used, [LessonError(e.line, problem, blocks=strict)]
    faults = [LessonError(entry.line, f"the option '{key}' is given twice; keep one") for key, entry in repeated]
    return entries, used, faults


def _readable_options(rows: list[str], line: int) -> dict[str, YamlEntry]:
    """The options that can be read on their own, so that an error in one of them is not followed by others."""
    entries: dict[str, YamlEntry] = {}
    for number, row in enumerate(rows, line):
        try:
            entries |= parse_yaml_mapping(row, number)[0]
        except InvalidYaml:
            continue
    return entries


def _may_be_option(text: str, *, strict: bool) -> bool:
    return text.lstrip().startswith(":") if strict else _OPTION_LINE.match(text) is not None


def _plain_options(lines: list[str], line: int) -> dict[str, YamlEntry]:
    """Options whose values are not YAML, such as a caption with a colon."""
    matches = [(number, _OPTION_LINE.match(text)) for number, text in enumerate(lines, line)]
    return {match["key"]: YamlEntry((match["value"] or "").strip(), number) for number, match in matches if match}


def _usage_errors(directive: Directive) -> Iterator[LessonError]:
    spec = directive.spec
    if spec is UNKNOWN_SPEC:
        meant = similar_word(directive.name, DIRECTIVE_SPECS)
        otherwise = "its text is shown in a box; write {admonition}, or remove it"
        if meant:
            otherwise = f"did you mean '{meant}'? Its text is shown in a box"
        what = f"unknown directive {{{directive.name[:40]}}}"
        yield unknown_word(directive.line, what, directive.name, LOCKSTEP_DIRECTIVES, otherwise)
        return
    if spec.kind == "dropped":
        yield lesson_warning(directive.line, f"{{{directive.name}}} is left out; {spec.about.partition(': ')[2]}")
        return
    if spec.argument == "none" and directive.argument:
        yield lesson_warning(
            directive.line, f"{{{directive.name}}} takes no argument; put {directive.argument[:80]!r} on the line below"
        )
    if spec.argument == "required" and not directive.argument:
        wanted = spec.argument_is.replace("the title", "a title")
        strict = directive.name in LOCKSTEP_DIRECTIVES
        yield LessonError(
            directive.line, f"{{{directive.name}}} needs {wanted} after its name", blocks=strict, warning=not strict
        )
    for key, entry in directive.options.items():
        if not _takes_option(directive, key):
            known = [*spec.options] if directive.name in LOCKSTEP_DIRECTIVES else []
            usable = f"use one of {_sorted_names(spec.options)}" if spec.options else "it takes none"
            what = f"unknown option '{key[:40]}' of {{{directive.name}}}"
            yield unknown_word(entry.line, what, key, known, f"it has no effect; {usable}")
    meant = _option_without_colon(directive)
    if meant:
        text = (
            f"this line is not an option, because it has no colon in front; write ':{meant}: …' if it is meant as one"
        )
        yield lesson_warning(directive.body_line, text)


def _option_without_colon(directive: Directive) -> str:
    """The option that the first line of the body looks like; empty if it is something else."""
    match = _PLAIN_LINE.match(directive.body)
    if match is None or directive.spec.kind == "code":
        return ""
    if directive.spec.kind != "cell":
        return match[1] if match[1] in directive.spec.options else ""
    return "" if _assigns(match[0]) else similar_word(match[1], directive.spec.options)


def _assigns(line: str) -> bool:
    """Whether a line such as ``name: str = "x"`` is Python that gives a variable a value."""
    try:
        statement = ast.parse(line).body[0]
    except (SyntaxError, ValueError, IndexError):
        return False
    return isinstance(statement, ast.AnnAssign) and statement.value is not None


def _takes_option(directive: Directive, key: str) -> bool:
    spec = directive.spec
    if key in spec.options:
        return True
    if spec.kind == "cell":
        return key in JUPYTER_OPTIONS
    if directive.name in ("quiz", "predict"):
        return False
    return key in LAYOUT_OPTIONS or key.startswith(LAYOUT_PREFIXES) or spec.kind in ("silent", "dropped")


def unknown_word(line: int, what: str, word: str, known: Iterable[str], otherwise: str) -> LessonError:
    """An error if ``word`` is a misspelling of a known one, which its author needs, or else a warning."""
    similar = similar_word(word, known)
    if similar:
        return LessonError(line, f"{what}; did you mean '{similar}'?")
    return lesson_warning(line, f"{what}: {otherwise}")


def similar_word(word: str, known: Iterable[str], cutoff: float = _SIMILAR) -> str:
    """The known word that ``word`` is a misspelling of; empty if it is none."""
    similar = difflib.get_close_matches(word.casefold(), list(known), n=1, cutoff=cutoff)
    return similar[0] if similar else ""


def _sorted_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
