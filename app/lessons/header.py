"""The front matter of a lesson: which keys it may have, and what each must say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.lessons.choices import disagreements
from app.lessons.directives import Fault
from app.lessons.model import Status
from app.lessons.yaml_map import Entry, Value, YamlMistake, read_map
from runners.protocol import SHAPES, TooLargeTopology, Topology, UnknownTopology

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MOST_SLUG = 60
MOST_CHOICES = 8
"""Machines that a learner may pick from."""

_JUPYTERS = frozenset({"jupyter", "jupytext", "kernelspec", "language_info"})
"""Keys that Jupyter's tools write; ``jupyter_mistakes`` looks at them."""
_TRANSLATED = ("title", "summary")
T = TypeVar("T")


class Unfit(Exception):
    """A value that a key cannot have. ``str()`` says what to write instead."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the front matter says; None where it says nothing."""

    title: str | None = None
    """The title of the lesson. Required, in translations too."""
    summary: str | None = None
    """One or two sentences for the course map. Required, in translations too."""
    minutes: int | None = None
    """How long the lesson takes, as a whole number from 1 to 600. Required."""
    tags: tuple[str, ...] | None = None
    """A list of topics in lowercase letters, digits and hyphens: `[mirrored, all-reduce]`."""
    status: Status | None = None
    """`draft`, `published` or `deprecated`. The default is `draft`."""
    topology: str | None = None
    """The machine on which cells start. The default is `gpu:4`."""
    topologies: tuple[str, ...] | None = None
    """A list of the machines a learner may choose from. Without it there is no choice."""
    keras: int | None = None
    """`2` or `3`, the version of Keras with which cells start. The default is `3`."""
    kerases: tuple[int, ...] | None = None
    """A list of the versions of Keras a learner may choose from. Without it there is no choice."""
    requires: tuple[str, ...] | None = None
    """A list of lessons of the same course to read first, by the names of their folders."""
    requires_line: int = 1

    def on_top_of(self, english: Header) -> Header:
        """A translation's header: its own words, everything else from the English lesson."""
        return replace(english, title=self.title, summary=self.summary, requires_line=1)


def read_header(text: str | None, english: Header | None) -> tuple[Header, list[Fault]]:
    """Read the front matter, whose first line is line 1 of the file; ``english`` is given for a translation."""
    if text is None:
        return Header(), [Fault(1, "the file has no front matter; begin it with ---, 'title: …', 'summary: …', ---")]
    try:
        entries, repeated = read_map(text, 2)
    except YamlMistake as e:
        return Header(), [Fault(e.line, f"the front matter cannot be read: {e.reason}; write 'key: value' lines")]
    faults = [Fault(entry.line, f"'{key}' is given twice; keep one") for key, entry in repeated]
    values: dict[str, Any] = {}
    for key, entry in entries.items():
        if key in _KEYS:
            try:
                values[key] = _KEYS[key](entry.value)
            except Unfit as e:
                faults.append(Fault(entry.line, f"'{key}' {e}"))
        elif key not in _JUPYTERS:
            faults.append(Fault(entry.line, f"unknown key '{key}'; use one of {', '.join(_KEYS)}"))
    if "requires" in entries:
        values["requires_line"] = entries["requires"].line
    header = Header(**values)
    faults += disagreements(header, entries)
    faults += _missing(entries, english)
    if english is not None:
        faults += _departures(header, english, entries)
    return header, faults


def _missing(entries: dict[str, Entry], english: Header | None) -> Iterable[Fault]:
    needed = _TRANSLATED if english is not None else (*_TRANSLATED, "minutes")
    for key in needed:
        if key not in entries:
            yield Fault(1, f"the front matter has no '{key}'; add a line '{key}: …'")


def _departures(header: Header, english: Header, entries: dict[str, Entry]) -> Iterable[Fault]:
    for key, entry in entries.items():
        if key in _TRANSLATED or key not in _KEYS:
            continue
        mine, theirs = getattr(header, key), getattr(english, key)
        if mine is not None and theirs is not None and mine != theirs:
            yield Fault(entry.line, f"'{key}' differs from the English lesson; leave it out here")


# --- one reader a key ------------------------------------------------------------------------------------------


def _words(value: Value) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unfit("has to be a text; write the words behind the colon")
    return " ".join(value.split())


def _minutes(value: Value) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,3}", value) or not 1 <= int(value) <= 600:
        raise Unfit("has to be a whole number from 1 to 600")
    return int(value)


def _tags(value: Value) -> tuple[str, ...]:
    return _list(value, "tag", "multi-worker")


def _requires(value: Value) -> tuple[str, ...]:
    return _list(value, "lesson", "scaling-the-loss")


def _list(value: Value, noun: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unfit(f"has to be a list; write it as [{example}, …]")
    items = [str(item) for item in value]
    for item in items:
        if not SLUG.fullmatch(item) or len(item) > MOST_SLUG:
            raise Unfit(f"has a {noun} {item[:80]!r}; use small letters, digits and hyphens, as in {example}")
    if len(set(items)) < len(items):
        raise Unfit(f"names a {noun} twice; keep one")
    return tuple(items)


def _status(value: Value) -> Status:
    try:
        return Status(str(value))
    except ValueError:
        raise Unfit(f"cannot be {str(value)[:40]!r}; write one of {', '.join(Status)}") from None


def topology(value: Value) -> str:
    """Read a machine's name.

    Raises:
        Unfit: there is no such machine.
    """
    try:
        return str(Topology.parse(value if isinstance(value, str) else str(value)))
    except TooLargeTopology as e:
        raise Unfit(f"is too large with {e.text[:40]!r}: {e.bound}") from None
    except UnknownTopology as e:
        raise Unfit(f"names no machine with {e.text[:40]!r}; use {SHAPES}") from None


def topologies(value: Value) -> tuple[str, ...]:
    """Read the machines that a learner may pick from.

    Raises:
        Unfit: it is no list of machines, or names one twice.
    """
    return _choices(value, topology, "[gpu:2, gpu:4]")


def kerases(value: Value) -> tuple[int, ...]:
    """Read the versions of Keras that a learner may pick from.

    Raises:
        Unfit: it is no list of versions, or names one twice.
    """
    return _choices(value, keras, "[2, 3]")


def _choices(value: Value, reader: Callable[[Value], T], example: str) -> tuple[T, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_CHOICES:
        raise Unfit(f"has to be a list of 1 to {MOST_CHOICES}; write it as {example}")
    items = tuple(reader(item) for item in value)
    for item in items:
        if items.count(item) > 1:
            raise Unfit(f"names {item} twice; keep one")
    return items


def keras(value: Value) -> int:
    """Read a version of Keras.

    Raises:
        Unfit: it is neither 2 nor 3.
    """
    if value not in ("2", "3"):
        raise Unfit("has to be 2 or 3")
    return int(str(value))


_KEYS: dict[str, Callable[[Value], object]] = {
    "title": _words,
    "summary": _words,
    "minutes": _minutes,
    "tags": _tags,
    "status": _status,
    "topology": topology,
    "topologies": topologies,
    "keras": keras,
    "kerases": kerases,
    "requires": _requires,
}
