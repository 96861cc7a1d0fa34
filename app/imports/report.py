"""What an import changed, dropped or could not use: one sentence for each, with its place in the source."""

from __future__ import annotations

from dataclasses import dataclass, field


class CannotImport(Exception):
    """A source that cannot become a lesson or a course. ``str()`` says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry. ``place`` is ``file:line``, ``file, cell 3`` (cells count from 1) or a file."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(slots=True)
class Report:
    """Everything that an author may want to look at after an import."""

    changes: list[Change] = field(default_factory=list)
    warnings: list[Change] = field(default_factory=list)
    """What the pages of the result cannot show."""
    failures: list[Change] = field(default_factory=list)
    """Files that were left out, and errors that are left in the result."""
    missing_modules: dict[str, list[str]] = field(default_factory=dict)
    """Modules that are not installed here, with the places of the cells that import them."""

    def note(self, place: str, text: str) -> None:
        """Add a change, unless the same is said of the same place."""
        change = Change(place, text)
        if change not in self.changes[-20:]:
            self.changes.append(change)

    def fail(self, place: str, text: str) -> None:
        self.failures.append(Change(place, text))
