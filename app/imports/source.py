"""A file to import, read but not yet converted: text and code in order, each with its place in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from app.imports.report import CannotImport, Report
from app.lessons.yaml_with_lines import InvalidYaml, YamlEntry, parse_yaml_mapping

MAX_FILE_BYTES = 64_000_000
"""Of a notebook, with its outputs. JSON of this size takes seconds and about half a GB."""
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SUBSTITUTION = re.compile(r"\{\{[ \t]*(\w+)[ \t]*\}\}")
_PYTHON = ("python", "ipython")


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Markdown: a cell of a notebook, or a whole Markdown file with its cells."""

    text: str
    file: str
    cell: int | None = None
    """The number of the notebook's cell, from 1; None in a Markdown file."""
    attachments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Base64 by media type, by name."""

    def place(self, line: int) -> str:
        """``line`` counts from 1."""
        return f"{self.file}:{line}" if self.cell is None else f"{self.file}, cell {self.cell}"


@dataclass(frozen=True, slots=True)
class CodeSegment:
    """A code cell of a notebook."""

    code: str
    place: str
    name: str = ""
    """The name that the author gave it, if any."""
    caption: str = ""
    tags: tuple[str, ...] = ()


@dataclass(slots=True)
class SourceDocument:
    """A file that becomes a lesson."""

    path: PurePosixPath
    """Relative to the root of the import."""
    segments: list[TextSegment | CodeSegment]
    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    """``topology`` and ``keras``, if the file names them."""

    @property
    def file(self) -> str:
        return str(self.path)


def decode(content: bytes) -> str:
    """The text of a file, with ``\\n`` at the end of its lines.

    Raises:
        CannotImport: it is not UTF-8, or too large.
    """
    if len(content) > MAX_FILE_BYTES:
        raise CannotImport(f"the file has {len(content):,} bytes, and the limit is {MAX_FILE_BYTES:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise CannotImport(
            f"the byte 0x{content[e.start]:02x} at position {e.start:,} is not UTF-8; save the file as UTF-8"
        ) from e
    return text.replace("\r\n", "\n").replace("\r", "\n")


def printable(text: str, place: str, report: Report) -> str:
    """The text without control characters and half characters, which no lesson can contain."""
    clean = CONTROLS.sub("", text)
    if clean != text:
        report.note(place, f"{len(text) - len(clean)} control characters removed")
    return clean


def is_python(language: str) -> bool:
    """Whether the name of a notebook's language means Python."""
    return language.lower().startswith(_PYTHON)


def read_markdown(path: PurePosixPath, content: bytes, report: Report) -> SourceDocument:
    """Read a Markdown file, MyST or not.

    Raises:
        CannotImport: it is not text, or its cells are not Python.
    """
    file = str(path)
    text = printable(decode(content), file, report)
    found = _FRONT_MATTER.match(text)
    entries: dict[str, YamlEntry] = {}
    if found is not None:
        try:
            entries, _ = parse_yaml_mapping(found[1], 2)
        except InvalidYaml as e:
            report.note(f"{file}:{e.line}", f"front matter dropped: it cannot be read ({e.reason})")
        text = "\n" * found[0].count("\n") + _substituted(text[found.end() :], entries)
    document = SourceDocument(path, [TextSegment(text, file)])
    _use_front_matter(document, entries, report)
    return document


def _use_front_matter(document: SourceDocument, entries: Mapping[str, YamlEntry], report: Report) -> None:
    kernel = entries["kernelspec"].value if "kernelspec" in entries else {}
    language = str(kernel.get("language") or "python") if isinstance(kernel, dict) else "python"
    if not is_python(language):
        raise CannotImport(f"its cells are in {language[:40]!r}; Lockstep runs Python")
    document.title = entries["title"].text if "title" in entries else ""
    summary = next((entries[key] for key in ("summary", "description", "subtitle") if key in entries), None)
    document.summary = summary.text if summary else ""
    document.tags = _topics(entries)
    document.machine = {key: entries[key].text for key in ("topology", "keras") if key in entries}
    used = {"title", "summary", "description", "subtitle", "tags", "keywords", "topology", "keras", "substitutions"}
    jupyter = {"jupytext", "kernelspec", "jupyter", "language_info"}
    for key, entry in entries.items():
        if key not in used | jupyter:
            report.note(f"{document.file}:{entry.line}", f"'{key}' dropped from the front matter")


def _substituted(text: str, entries: Mapping[str, YamlEntry]) -> str:
    """The text with the values of MyST's substitutions, ``{{ name }}``, which lessons do not have."""
    myst = entries["myst"].value if "myst" in entries else None
    found = entries["substitutions"].value if "substitutions" in entries else None
    found = found or (myst.get("substitutions") if isinstance(myst, dict) else None)
    values = {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}
    return _SUBSTITUTION.sub(lambda match: values.get(match[1], match[0]), text) if values else text


def _topics(entries: Mapping[str, YamlEntry]) -> tuple[str, ...]:
    value = next((entries[key].value for key in ("tags", "keywords") if key in entries), [])
    words = value.split(",") if isinstance(value, str) else [word for word in value if isinstance(word, str)]
    slugs = (slug(word) for word in words)
    return tuple(dict.fromkeys(word for word in slugs if word))[:8]


def slug(text: str, length: int = 60) -> str:
    """Lowercase ASCII letters and digits joined by hyphens; empty if there are none."""
    plain = re.sub(r"[`*$\\{}]", "", text.casefold())
    words = re.findall(r"[a-z0-9]+", plain)
    joined = ""
    for word in words:
        longer = f"{joined}-{word}" if joined else word[:length]
        if len(longer) > length:
            break
        joined = longer
    return joined


def yaml_text(text: str) -> str:
    """A text on one line of YAML, quoted where YAML would read something else."""
    flat = " ".join(text.split())
    plain = re.fullmatch(r"[A-Za-z][\w ,.()/+-]*", flat) and flat.lower() not in ("true", "false", "null", "yes", "no")
    return flat if plain else "'" + flat.replace("'", "''") + "'"
