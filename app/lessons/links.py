"""The targets of a lesson's links, and their URLs on the page.

Authors write paths between files, which also work in JupyterLab and on code hosts; pages need URLs of pages. The URLs
are relative to ``/{language}/courses/{course}/{slug}``, so they keep the reader's language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

_LESSON_FILE = re.compile(r"lesson(?:\.[a-z]{2})?\.md")
_NAME = re.compile(r"[a-z0-9-]+")
_ASSET = re.compile(r"(?:\./)?(?P<name>assets/[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*)")


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A link's target. ``lesson`` is empty for this lesson; ``course`` is empty for this course."""

    kind: Literal["outside", "asset", "lesson", "here"]
    name: str = ""
    course: str = ""
    fragment: str = ""

    def address(self, slug: str) -> str:
        """The URL of the target on the page of the lesson ``slug``."""
        mark = f"#{quote(self.fragment)}" if self.fragment else ""
        if self.kind == "asset":
            return f"{slug}/{self.name}"
        if self.kind == "lesson":
            return f"../{self.course}/{self.name}{mark}" if self.course else f"{self.name}{mark}"
        return self.name if self.kind == "outside" else mark or f"{slug}"


class InvalidLink(Exception):
    """A link that lessons do not support. ``str()`` says what to write instead."""


def parse_link(href: str) -> LinkTarget:
    """Parse a link.

    Raises:
        InvalidLink: lessons do not support this kind of link.
    """
    if not href.strip():
        raise InvalidLink("has no target; write where it leads between ( and )")
    try:
        parts = urlsplit(href)
    except ValueError as e:
        raise InvalidLink(
            f"'{href[:80]}' is not an address; write https://…, ../lesson/lesson.md or assets/file"
        ) from e
    if parts.scheme in ("http", "https", "mailto"):
        return LinkTarget("outside", href)
    if parts.scheme or href.startswith("//"):
        raise InvalidLink(f"'{href[:80]}' is not a kind of link that lessons support; write https://…")
    path, fragment = unquote(parts.path), unquote(parts.fragment)
    if not path or _LESSON_FILE.fullmatch(path.removeprefix("./")):
        return LinkTarget("here", fragment=fragment)
    asset = _ASSET.fullmatch(path)
    if asset:
        return LinkTarget("asset", asset["name"])
    return _parse_lesson_link(href, path, fragment)


def _parse_lesson_link(href: str, path: str, fragment: str) -> LinkTarget:
    steps = [step for step in path.split("/") if step != "."]
    ups = len(steps) - len([step for step in steps if step != ".."])
    names = [step for step in steps[ups:] if step]
    if names and _LESSON_FILE.fullmatch(names[-1]):
        names.pop()
    plain = all(_NAME.fullmatch(name) for name in names)
    if plain and steps[:ups] == [".."] * ups:
        if (ups, len(names)) == (1, 1):
            return LinkTarget("lesson", names[0], fragment=fragment)
        if (ups, len(names)) == (2, 2):
            return LinkTarget("lesson", names[1], course=names[0], fragment=fragment)
    raise InvalidLink(
        f"'{href[:80]}' is not a valid target; write ../other-lesson/lesson.md, assets/file, #heading or https://…"
    )
