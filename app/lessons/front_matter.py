"""The front matter of a lesson: its keys and their valid values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from app.lessons.directives import LessonError, lesson_warning, unknown_word
from app.lessons.machine_options import machine_option_errors
from app.lessons.model import LessonStatus
from app.lessons.yaml_with_lines import InvalidYaml, YamlEntry, YamlValue, parse_yaml_mapping, unquoted_colon
from runners.wire.protocol import TOPOLOGY_FORMS, TooLargeTopology, Topology, UnknownTopology

SLUG_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_SLUG_LENGTH = 60
MAX_MINUTES = 600
MAX_MACHINE_OPTIONS = 8
"""Machines that a learner may choose from."""

_JUPYTER_KEYS = frozenset({"jupyter", "jupytext", "kernelspec", "language_info"})
"""Keys that Jupyter's tools write; ``jupyter_metadata_errors`` checks them."""
MYST_KEYS = frozenset(
    {
        "abbreviations",
        "authors",
        "bibliography",
        "date",
        "description",
        "doi",
        "downloads",
        "exports",
        "file_format",
        "html_meta",
        "keywords",
        "label",
        "license",
        "math",
        "myst",
        "mystnb",
        "numbering",
        "orphan",
        "settings",
        "short_title",
        "subject",
        "subtitle",
        "thumbnail",
        "tocdepth",
    }
)
"""Keys of MyST and Jupyter Book without an effect here, but for ``description``."""
_OTHER_KEYS = _JUPYTER_KEYS | MYST_KEYS
_DATE = re.compile(r"\d{4}-?\d{2}-?\d{2}")
_TRANSLATED_KEYS = ("title", "summary")
T = TypeVar("T")


class InvalidValue(Exception):
    """A value that a key cannot have. ``str()`` is the end of the error message, after the key."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The values in the front matter; None for keys that it does not set."""

    title: str | None = None
    """The title of the lesson. By default, a `# heading` at the top of the text, or else the first heading."""
    summary: str | None = None
    """One or two sentences for the course map. By default, `description`, or else the first paragraph."""
    minutes: int | None = None
    """How long the lesson takes, as a whole number from 1 to 600. Set it if you have measured it. The default is an
    estimate: a minute for 200 words (400 characters of Korean or Chinese), a minute for each cell, and 5 more for each
    exercise, without optional sections and closed boxes; from 10 minutes on rounded to a multiple of 5."""
    tags: tuple[str, ...] | None = None
    """A list of topics in lowercase letters, digits and hyphens: `[mirrored, all-reduce]`."""
    status: LessonStatus | None = None
    """`draft`, `published` or `deprecated`. The default is `draft`."""
    publish_at: datetime | None = None
    """When a `published` lesson becomes visible to learners: `2027-03-01`, or `2027-03-01T09:00+09:00`. A date is
    midnight UTC."""
    topology: str | None = None
    """The machine on which cells start. The default is `gpu:4`."""
    topologies: tuple[str, ...] | None = None
    """A list of the machines a learner may choose from. Without it there is no choice."""
    keras: int | None = None
    """`2` or `3`, the version of Keras with which cells start. The default is `3`."""
    kerases: tuple[int, ...] | None = None
    """A list of the versions of Keras a learner may choose from. Without it there is no choice."""
    requires: tuple[str, ...] | None = None
    """A list of lessons of the same course to read first, by the names of their folders. Pages show them, and whether
    the learner has completed them; no lesson is ever locked."""
    was: tuple[str, ...] | None = None
    """A list of former names of the lesson's folder. Learners' work and old links follow to this lesson."""
    requires_line: int = 1
    was_line: int = 1

    def on_top_of(self, english: FrontMatter) -> FrontMatter:
        """A translation's front matter: its own title and summary, everything else from the English lesson."""
        return replace(english, title=self.title, summary=self.summary, requires_line=1, was_line=1)


def parse_front_matter(text: str | None, english: FrontMatter | None) -> tuple[FrontMatter, list[LessonError]]:
    """Parse the front matter, which starts on line 1 of the file. For a translation, ``english`` is the original's."""
    if text is None:
        return FrontMatter(), []
    try:
        entries, repeated = parse_yaml_mapping(text, 2)
    except InvalidYaml as e:
        return FrontMatter(), [LessonError(e.line, _unreadable(text.split("\n"), e))]
    faults = [LessonError(entry.line, f"'{key}' is given twice; keep one") for key, entry in repeated]
    values: dict[str, Any] = {}
    for key, entry in entries.items():
        if key in _PARSERS:
            try:
                values[key] = _PARSERS[key](entry.value)
            except InvalidValue as e:
                optional = key == "tags"
                faults.append(LessonError(entry.line, f"'{key}' {e}", blocks=not optional, warning=optional))
        elif key not in _OTHER_KEYS:
            otherwise = f"it has no effect; use one of {', '.join(_PARSERS)}"
            faults.append(unknown_word(entry.line, f"unknown key '{key[:40]}'", key, _PARSERS, otherwise))
    if "summary" not in entries and "description" in entries and entries["description"].text:
        values["summary"] = " ".join(entries["description"].text.split())
    for key in ("requires", "was"):
        if key in entries:
            values[f"{key}_line"] = entries[key].line
    header = FrontMatter(**values)
    faults += machine_option_errors(header, entries)
    if english is not None:
        faults += _translation_conflicts(header, english, entries)
    elif header.publish_at is not None and header.status in (None, LessonStatus.draft):
        text = "'publish_at' has no effect on a draft, which stays hidden; write status: published beside it"
        faults.append(lesson_warning(entries["publish_at"].line, text))
    return header, faults


def _unreadable(lines: list[str], error: InvalidYaml) -> str:
    row = lines[error.line - 2] if 0 <= error.line - 2 < len(lines) else ""
    return unquoted_colon(row) or f"the front matter cannot be read: {error.reason}; write 'key: value' lines"


def _translation_conflicts(
    header: FrontMatter, english: FrontMatter, entries: dict[str, YamlEntry]
) -> Iterable[LessonError]:
    for key, entry in entries.items():
        if key in _TRANSLATED_KEYS or key not in _PARSERS:
            continue
        mine, theirs = getattr(header, key), getattr(english, key)
        if mine is None or mine == theirs:
            continue
        if theirs is None:
            yield LessonError(entry.line, f"'{key}' is not in the English lesson; write it there instead")
        else:
            yield LessonError(entry.line, f"'{key}' differs from the English lesson; leave it out here")


# --- one parser per key ---------------------------------------------------------------------------------------


def _parse_text(value: YamlValue) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue("must be a string; write the text after the colon")
    return " ".join(value.split())


def _parse_minutes(value: YamlValue) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,3}", value) or not 1 <= int(value) <= MAX_MINUTES:
        raise InvalidValue(f"must be a whole number from 1 to {MAX_MINUTES}")
    return int(value)


def _parse_list(value: YamlValue, noun: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidValue(f"must be a list; write it as [{example}, …]")
    items = [str(item) for item in value]
    for item in items:
        if not SLUG_PATTERN.fullmatch(item) or len(item) > MAX_SLUG_LENGTH:
            raise InvalidValue(
                f"has a {noun} {item[:80]!r}; use lowercase letters, digits, and hyphens, as in {example}"
            )
    if len(set(items)) < len(items):
        raise InvalidValue(f"names a {noun} twice; keep one")
    return tuple(items)


def _parse_status(value: YamlValue) -> LessonStatus:
    try:
        return LessonStatus(str(value))
    except ValueError:
        raise InvalidValue(f"cannot be {str(value)[:40]!r}; write one of {', '.join(LessonStatus)}") from None


def _parse_publish_at(value: YamlValue) -> datetime:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or (at.tzinfo is None and not _DATE.fullmatch(str(value))):
        raise InvalidValue("must be a date, or a time with its zone; write 2027-03-01 or 2027-03-01T09:00+09:00")
    try:
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise InvalidValue(f"cannot be {str(value)[:40]!r}; write a date of this century") from None


def parse_topology(value: YamlValue) -> str:
    """Parse a machine's name.

    Raises:
        InvalidValue: there is no such machine.
    """
    try:
        return str(Topology.parse(value if isinstance(value, str) else str(value)))
    except TooLargeTopology as e:
        raise InvalidValue(f"has a machine that is too large: {e.text[:40]!r} ({e.bound})") from None
    except UnknownTopology as e:
        raise InvalidValue(f"has an unknown machine {e.text[:40]!r}; use {TOPOLOGY_FORMS}") from None


def parse_topologies(value: YamlValue) -> tuple[str, ...]:
    """Parse the machines that a learner may choose from.

    Raises:
        InvalidValue: it is not a list of machines, or it names one twice.
    """
    return _parse_options(value, parse_topology, "[gpu:2, gpu:4]")


def parse_keras_versions(value: YamlValue) -> tuple[int, ...]:
    """Parse the versions of Keras that a learner may choose from.

    Raises:
        InvalidValue: it is not a list of versions, or it names one twice.
    """
    return _parse_options(value, parse_keras_version, "[2, 3]")


def _parse_options(value: YamlValue, reader: Callable[[YamlValue], T], example: str) -> tuple[T, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_MACHINE_OPTIONS:
        raise InvalidValue(f"must be a list of 1 to {MAX_MACHINE_OPTIONS}; write it as {example}")
    items = tuple(reader(item) for item in value)
    for item in items:
        if items.count(item) > 1:
            raise InvalidValue(f"names {item} twice; keep one")
    return items


def parse_keras_version(value: YamlValue) -> int:
    """Parse a version of Keras.

    Raises:
        InvalidValue: it is neither 2 nor 3.
    """
    if value not in ("2", "3"):
        raise InvalidValue("must be 2 or 3")
    return int(str(value))


_PARSERS: dict[str, Callable[[YamlValue], object]] = {
    "title": _parse_text,
    "summary": _parse_text,
    "minutes": _parse_minutes,
    "tags": partial(_parse_list, noun="tag", example="multi-worker"),
    "status": _parse_status,
    "publish_at": _parse_publish_at,
    "topology": parse_topology,
    "topologies": parse_topologies,
    "keras": parse_keras_version,
    "kerases": parse_keras_versions,
    "requires": partial(_parse_list, noun="lesson", example="scaling-the-loss"),
    "was": partial(_parse_list, noun="former name", example="scaling-the-loss"),
}
