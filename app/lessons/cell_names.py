"""Names for cells that have none, such as those of notebooks.

A name comes from the first words of the cell's code: its first comment, or else its first statement. So it stays the
same while other cells change, and most changes of the cell itself keep it, too. Equal names are numbered in order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, MutableMapping

CELL_NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
MAX_CELL_NAME_LENGTH = 40
_MAX_WORDS = 5
_DEFINITION = re.compile(r"(?:async\s+)?(?:def|class)\s+(\w+)")
_COLAB_FORM = re.compile(r"#\s*@(?:title|markdown|param)\b")
_MAGIC = re.compile(r"[%!]+")


def derived_name(code: str, taken: Container[str], numbers: MutableMapping[str, int]) -> str:
    """A name for a cell with this code that is not taken yet. ``numbers`` is as in ``unique_name``."""
    return unique_name(_shorten(_first_words(code)) or "cell", taken, numbers)


def repaired_name(name: str) -> str:
    """The valid name that is closest to an invalid one; empty if there is none."""
    return _shorten(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name))


def unique_name(name: str, taken: Container[str], numbers: MutableMapping[str, int]) -> str:
    """The name, with a number if it is taken. ``numbers`` has the last number of each name."""
    number, unique = numbers.get(name, 1), name
    while unique in taken:
        number += 1
        ending = f"-{number}"
        unique = name[: MAX_CELL_NAME_LENGTH - len(ending)].rstrip("-") + ending
    numbers[name] = number
    return unique


def _first_words(code: str) -> str:
    """The words of the first line that says something."""
    for line in code.split("\n")[:200]:
        text = line.strip()
        if text.startswith("#"):
            words = _COLAB_FORM.sub("", text).lstrip("#").strip()
            if re.search(r"[A-Za-z]", words):
                return words
        elif text and not text.startswith("@") and re.search(r"[A-Za-z]", text):
            definition = _DEFINITION.match(text)
            return definition[1] if definition else _MAGIC.sub("", text)
    return ""


def _shorten(text: str) -> str:
    """Up to five words of ASCII letters and digits, joined by hyphens, starting with a letter."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.casefold())
    while words and not words[0][0].isalpha():
        del words[0]
    name = ""
    for word in words[:_MAX_WORDS]:
        longer = f"{name}-{word}" if name else word[:MAX_CELL_NAME_LENGTH]
        if len(longer) > MAX_CELL_NAME_LENGTH:
            break
        name = longer
    return name
