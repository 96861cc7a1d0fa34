"""The roles that a lesson may use: what each becomes on the page, and what is wrong with one.

A role is written ``{name}`content```. References may have words of their own: ``{ref}`words <name>```.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from markdown_it.common.utils import escapeHtml

from app.i18n import N_, gettext
from app.lessons.directives import similar_word
from app.lessons.labels import Label, Labels, glue_label
from app.lessons.links import InvalidLink, LinkTarget, parse_link

ROLES = {
    "abbr": "An abbreviation with its meaning, such as `TPU (tensor processing unit)`.",
    "cite": "A work of the bibliography, by its key. `cite:t` is part of a sentence; `cite:p` is the same as `cite`. "
    "Separate several keys by commas.",
    "code": "`Code`, as between backticks.",
    "command": "A command, shown as code.",
    "doc": "Another lesson of the course, such as `scaling-the-loss`, or `the next lesson <scaling-the-loss>`.",
    "download": "A file of the lesson to download, such as `the data <assets/data.csv>`.",
    "emphasis": "*Stressed* words.",
    "envvar": "An environment variable, shown as code.",
    "eq": "The number of a formula that has a name.",
    "file": "The name of a file, shown as code.",
    "glue": "The name of a value that a cell passes to MyST-NB's `glue`, with a link to the cell: the page exists "
    "before the cell runs, so it cannot show the value. `glue:any`, `glue:md` and `glue:text` are the same.",
    "guilabel": "A word of a user interface, shown in bold.",
    "index": "Words for an index; only the words are shown.",
    "kbd": "A key to press: {kbd}`Shift`.",
    "literal": "The same as `code`.",
    "math": "A formula within the text, as `$…$` is.",
    "menuselection": "A path in a menu, shown in bold.",
    "numref": "The number of a figure, table, listing, or exercise, such as `lanes`, or `figure %s <lanes>`.",
    "program": "The name of a program, shown as code.",
    "ref": "Anything that has a name, such as `sum-rule`, or `the rule <sum-rule>`.",
    "samp": "Sample text, shown as code.",
    "strong": "**Bold** words.",
    "sub": "Subscript.",
    "sup": "Superscript.",
    "term": "A term of the lesson's glossary.",
}
"""Every role and its description, for the reference in ``docs/teach``."""

ELEMENTS = {
    "kbd": "kbd",
    "code": "code",
    "command": "code",
    "envvar": "code",
    "file": "code",
    "literal": "code",
    "program": "code",
    "samp": "code",
    "emphasis": "em",
    "guilabel": "strong",
    "menuselection": "strong",
    "strong": "strong",
    "sub": "sub",
    "sup": "sup",
}
"""Roles whose words are in an HTML element."""
_ALIASES = {
    "abbreviation": "abbr",
    "prf:ref": "ref",
    "any": "ref",
    "subscript": "sub",
    "superscript": "sup",
    "cite:p": "cite",
    "cite:ps": "cite",
    "citep": "cite",
    "cite:ct": "cite:t",
    "cite:ts": "cite:t",
    "citet": "cite:t",
    "math:numref": "eq",
    "glue:": "glue",
    "glue:any": "glue",
    "glue:figure": "glue",
    "glue:math": "glue",
    "glue:md": "glue",
    "glue:text": "glue",
}
_PYTHON_NAMES = re.compile(r"(?:py:)?(?:func|class|meth|mod|attr|data|obj|exc|const)")
_WITH_WORDS = frozenset({"ref", "numref", "doc", "download", "term", "eq", "index"})
"""Roles whose content may be ``words <target>``."""
LABEL_WORDS = {
    "figure": N_("Figure {number}"),
    "table": N_("Table {number}"),
    "listing": N_("Listing {number}"),
    "equation": "({number})",
    "exercise": N_("Exercise {number}"),
}
"""What refers to something with a number."""


@dataclass(frozen=True, slots=True)
class TextRole:
    """A role with its standard name, the words to show (empty if it has none of its own), and its target."""

    name: str
    words: str
    target: str


def read_role(name: str, content: str) -> TextRole:
    """Read a role; the name of an unknown one is kept."""
    standard = _ALIASES.get(name, "code" if _PYTHON_NAMES.fullmatch(name) else name)
    content = content.strip()
    if name == "glue:text":
        content = content.partition(":")[0]  # behind it is how Python would format the value
    words, opened, target = content.removesuffix(">").rpartition("<")
    if standard in _WITH_WORDS and opened and target and content.endswith(">") and ">" not in target:
        return TextRole(standard, words.rstrip(), target.strip())
    return TextRole(standard, "", content)


def label_words(label: Label, labels: Labels) -> str:
    """The words for something with a name that a text refers to."""
    if label.kind in LABEL_WORDS and label.number is not None:
        return gettext(LABEL_WORDS[label.kind]).format(number=label.number)
    if label.kind == "solution":
        return solution_title(label.of, labels)
    return label.title


def solution_title(exercise: str, labels: Labels) -> str:
    """The title of the solution of an exercise, by the exercise's name."""
    label = labels.by_name.get(exercise)
    words = label_words(label, labels) if label is not None and label.kind == "exercise" else ""
    return gettext("Solution to {exercise}").format(exercise=words) if words else gettext("Solution")


def is_known_role(name: str) -> bool:
    standard = read_role(name, "").name
    return standard in ROLES or standard == "cite:t"


def similar_role(name: str) -> str:
    """The role that ``name`` is a misspelling of; empty if it is none."""
    return similar_word(name, [*ROLES, *_ALIASES])


def reference_problem(name: str, content: str, labels: Labels) -> str | None:
    """What is wrong with a reference to something with a name, and what to write; None if nothing is."""
    role = read_role(name, content)
    wanted = role.target[:40]
    if role.name not in ("ref", "numref", "eq") or role.target in labels.by_name:
        return None
    names = [each for each, label in labels.by_name.items() if role.name != "eq" or label.kind == "equation"]
    meant = similar_word(role.target, names, cutoff=0.6)
    if role.name == "eq":
        return f"no formula has the name '{wanted}'; " + (
            f"did you mean '{meant}'?" if meant else f"write ({wanted}) behind its $$"
        )
    return f"nothing here has the name '{wanted}'; " + (
        f"did you mean '{meant}'?" if meant else f"write ({wanted})= above it, or correct it"
    )


def role_problem(name: str, content: str, labels: Labels) -> str | None:
    """What is wrong with a known role other than a reference, and what to write; None if nothing is."""
    role = read_role(name, content)
    if role.name == "term" and term_id(role, labels) is None:
        return f"no glossary of this lesson has the term '{role.target[:40]}'; add it, or write the word"
    if role.name in ("cite", "cite:t"):
        lost = [key for key in cited_keys(role.target) if key not in labels.works]
        hint = "add it to the .bib file" if labels.works else "add a {bibliography}, which reads the .bib files here"
        return f"no bibliography of this lesson has the work '{lost[0][:40]}'; {hint}" if lost else None
    if role.name == "glue" and glue_label(role.target) not in labels.by_name:
        name = role.target[:40]
        return f'no cell of this lesson calls glue("{name}", …), so only the name is shown; write the value'
    if role.name == "download" and _download(role) is None:
        return f"the file '{role.target[:80]}' is not in the lesson; put it in assets/ and write assets/…"
    if role.name == "doc" and role_reference(name, content) is None:
        return f"'{role.target[:60]}' is not a lesson of this course; write the name of its folder"
    return None


def role_reference(name: str, content: str) -> LinkTarget | None:
    """The lesson or the file that a role links to."""
    role = read_role(name, content)
    if role.name == "download":
        return _download(role)
    if role.name == "doc" and ":" not in role.target:
        last = role.target.rstrip("/").rpartition("/")[2]
        slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\.(?:md|ipynb)$", "", last).casefold()).strip("-")
        return LinkTarget("lesson", slug) if slug else None
    return None


def cited_keys(content: str) -> list[str]:
    return [key.strip() for key in content.split(",") if key.strip()]


def render_role(name: str, content: str, labels: Labels, slug: str) -> str:
    """The HTML of a role other than ``math``."""
    role = read_role(name, content)
    words = escapeHtml(role.words or role.target)
    if role.name in ELEMENTS:
        element = ELEMENTS[role.name]
        return f"<{element}>{escapeHtml(content)}</{element}>"
    match role.name:
        case "abbr":
            return _abbreviation(role.target) or words
        case "ref" | "numref" | "eq":
            return _reference(role, labels)
        case "term":
            anchor = term_id(role, labels)
            return f'<a href="#{escapeHtml(anchor)}">{words}</a>' if anchor else words
        case "cite" | "cite:t":
            return _citation(role, labels)
        case "doc" | "download":
            target = role_reference(name, content)
            if target is None:
                return words
            download = " download" if role.name == "download" else ""
            return f'<a href="{escapeHtml(target.address(slug))}"{download}>{words}</a>'
        case "glue":
            label = labels.by_name.get(glue_label(role.target))
            return f'<a href="#{escapeHtml(label.id)}"><code>{words}</code></a>' if label else f"<code>{words}</code>"
        case "index":
            return escapeHtml(re.sub(r"^\s*(?:single|pair|see):\s*", "", role.words or role.target))
    return escapeHtml(content)


def _abbreviation(content: str) -> str:
    """``short (long)`` as HTML; empty if the content is something else."""
    at = content.find("(", 1)
    short, long = content[:at].rstrip(), content[at + 1 : -1]
    if at < 0 or not long or not content.endswith(")"):
        return ""
    return f'<abbr title="{escapeHtml(long)}">{escapeHtml(short)}</abbr>'


def reference_words(role: TextRole, labels: Labels) -> str:
    """The words of a ``ref``, ``numref`` or ``eq``, with the numbers that the page shows."""
    label = labels.by_name.get(role.target)
    if label is None:
        return role.words.replace("%s", "?").replace("{number}", "?") or role.target
    words = role.words
    if role.name == "numref" and words:
        words = words.replace("%s", str(label.number or "")).replace("{number}", str(label.number or ""))
        words = words.replace("{name}", label.title)
    return words or label_words(label, labels) or role.target


def _reference(role: TextRole, labels: Labels) -> str:
    words, label = escapeHtml(reference_words(role, labels)), labels.by_name.get(role.target)
    return words if label is None else f'<a href="#{escapeHtml(label.id)}">{words}</a>'


def _citation(role: TextRole, labels: Labels) -> str:
    parts = []
    for key in cited_keys(role.target):
        work = labels.works.get(key)
        if work is None:
            parts.append(escapeHtml(key))
            continue
        who, when = work.citation
        words = f"{who} ({when})" if role.name == "cite:t" else f"{who}, {when}"
        parts.append(f'<a href="#{escapeHtml(f"cite-{key}")}">{escapeHtml(words)}</a>')
    joined = (", " if role.name == "cite:t" else "; ").join(parts)
    return joined if role.name == "cite:t" else f"({joined})"


def term_id(role: TextRole, labels: Labels) -> str | None:
    """The ID of the term of a glossary that a role names; None if no glossary has it."""
    term = " ".join(role.target.split()).casefold()
    return labels.terms.get(term) or labels.terms.get(term.removesuffix("s"))


def _download(role: TextRole) -> LinkTarget | None:
    try:
        target = parse_link(role.target)
    except InvalidLink:
        return None
    return target if target.kind == "asset" else None
