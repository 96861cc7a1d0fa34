"""Reads BibTeX files: as much of the format as a list of cited works needs. Pure.

Strings (``@string``) are not expanded, and LaTeX in a field is reduced to its text: braces go, accents stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

MAX_WORKS = 2_000
_MOST_NAMES = 3
_MOST_VALUE = 20_000
"""Characters of a field. A longer one ends the entry."""
_MOST_UNCLOSED = 20
"""Values without an end, after which a file is given up: each is searched for its end."""
_BRACES = re.compile(r"\\.|[{}\"]", re.DOTALL)
_ENTRY = re.compile(r"@(?P<kind>[A-Za-z]+)\s*[{(]\s*(?P<key>[^\s,{}()=\"]+)\s*,")
_FIELD = re.compile(r"\s*,?\s*(?P<name>[A-Za-z][\w-]*)\s*=\s*")
_PLAIN_VALUE = re.compile(r"[^\s,{}\"]+")
_ACCENT = re.compile(r"\\(?:(?P<mark>[`'^\"~=.])\s*|(?P<letter>[cvuHkr])(?:\s+|(?=\{)))\{?\\?(?P<base>[A-Za-z])\}?")
_COMBINING = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "c": "\u0327",
    "v": "\u030c",
    "u": "\u0306",
    "H": "\u030b",
    "k": "\u0328",
    "r": "\u030a",
}
_LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å", "i": "ı"}
_COMMAND = re.compile(r"\\([A-Za-z]+)\s*")
_NOT_WORKS = frozenset({"comment", "string", "preamble"})


@dataclass(frozen=True, slots=True)
class CitedWork:
    """One entry of a bibliography; ``fields`` have lowercase names and plain text."""

    key: str
    fields: Mapping[str, str]

    @property
    def authors(self) -> tuple[str, ...]:
        """The last names of the first authors, or editors: one more than a citation names."""
        people = self.fields.get("author") or self.fields.get("editor") or ""
        first = re.split(r"\s+and\s+", people, maxsplit=_MOST_NAMES)[:_MOST_NAMES]
        return tuple(_last_name(person) for person in first if person.strip())

    @property
    def year(self) -> str:
        return self.fields.get("year") or self.fields.get("date", "")[:4]

    @property
    def citation(self) -> tuple[str, str]:
        """Who and when, as a text cites it: ``("Dean et al.", "2012")``."""
        names = self.authors
        if not names:
            who = self.fields.get("title", self.key)
        elif len(names) > 2:
            who = f"{names[0]} et al."
        else:
            who = " & ".join(names)
        return who, self.year or "n.d."

    @property
    def source(self) -> str:
        """Where it was published, in one line."""
        fields = self.fields
        where = next(
            (fields[key] for key in ("journal", "journaltitle", "booktitle", "publisher") if fields.get(key)), ""
        )
        volume = fields.get("volume", "") + (f"({fields['number']})" if fields.get("number") else "")
        rest = (
            fields.get("institution") or fields.get("school") or "",
            fields.get("pages", "").replace("--", "\u2013"),
        )
        return ", ".join(part for part in (where, volume, *rest) if part)

    @property
    def address(self) -> str:
        """The URL of the work; empty if it has none that a page may link to."""
        doi = self.fields.get("doi", "").strip().removeprefix("https://doi.org/")
        url = f"https://doi.org/{doi}" if doi else self.fields.get("url", "").strip()
        return url if url.startswith(("https://", "http://")) else ""


def parse_bibliography(text: str) -> list[CitedWork]:
    """The works of a BibTeX file. What cannot be read is skipped."""
    works: list[CitedWork] = []
    unclosed = 0
    for match in _ENTRY.finditer(text):
        if match["kind"].lower() in _NOT_WORKS:
            continue
        fields, at = _fields(text, match.end())
        works.append(CitedWork(match["key"], fields))
        unclosed += at < 0
        if len(works) == MAX_WORKS or unclosed > _MOST_UNCLOSED:
            break
    return works


def _fields(text: str, at: int) -> tuple[dict[str, str], int]:
    """The fields that start here, and where they end; -1 if one never does."""
    fields: dict[str, str] = {}
    while at >= 0 and (match := _FIELD.match(text, at)) is not None:
        value, at = _value(text, match.end())
        if at >= 0:
            fields[match["name"].lower()] = value
    return fields, at


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that starts here as plain text, and where it ends; -1 if it never does."""
    opening = text[at : at + 1]
    if opening not in ("{", '"'):
        plain = _PLAIN_VALUE.match(text, at)
        return (plain[0], plain.end()) if plain else ("", -1)
    depth = 0
    for mark in _BRACES.finditer(text, at, min(len(text), at + _MOST_VALUE)):
        depth += (mark[0] == "{") - (mark[0] == "}")
        closed = depth == 0 and (mark[0] == "}" if opening == "{" else mark[0] == '"' and mark.start() > at)
        if closed:
            return _plain_text(text[at + 1 : mark.start()]), mark.end()
    return "", -1


def _plain_text(latex: str) -> str:
    text = _ACCENT.sub(_accented, latex)
    text = _COMMAND.sub(lambda match: _LETTERS.get(match[1], ""), text)
    text = re.sub(r"\\([&%$#_{}])", r"\1", text).replace("~", " ").replace("---", "\u2014")
    return " ".join(re.sub(r"[{}]", "", text).split())


def _accented(match: re.Match[str]) -> str:
    mark = _COMBINING[match["mark"] or match["letter"]]
    return unicodedata.normalize("NFC", match["base"] + mark)


def _last_name(person: str) -> str:
    if "," in person:
        return person.partition(",")[0].strip()
    words = person.split()
    start = next((i for i, word in enumerate(words[:-1]) if i and word[:1].islower()), len(words) - 1)
    return " ".join(words[start:])
