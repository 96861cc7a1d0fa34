"""Parses a YAML mapping with the line of every key; scalars remain text, so that no types are guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

_MAX_BRACKETS = 50
"""One inside the other: what the scanner does for each bracket grows with the number of open ones."""
MAX_NODES = 300
"""Aliases can make a short text expand to a huge one; a lesson's front matter has a few dozen nodes."""

_UNQUOTED_COLON = re.compile(r"([A-Za-z][\w.+-]*):\s+([^'\"\[{>|].*:(?:\s.*|))")
YamlValue = str | list["YamlValue"] | dict[str, "YamlValue"]


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """A key's value and line, from 1."""

    value: YamlValue
    line: int

    @property
    def text(self) -> str:
        """The value if it is text, else an empty string."""
        return self.value.strip() if isinstance(self.value, str) else ""


class InvalidYaml(Exception):
    """The text is not a YAML mapping. ``line`` counts from 1 in the file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class _Loader(yaml.SafeLoader):
    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        if self.flow_level >= _MAX_BRACKETS:
            raise yaml.scanner.ScannerError(None, None, "it has too many brackets inside brackets", self.get_mark())
        super().fetch_flow_collection_start(TokenClass)


def unquoted_colon(row: str, mark: str = "") -> str | None:
    """What is wrong with ``key: value`` if the value has a colon; None if it has none. Options begin with ``mark``."""
    match = _UNQUOTED_COLON.fullmatch(row.strip())
    if match is None:
        return None
    key, value = match[1], match[2].strip("\u2018\u2019\u201c\u201d")
    shown = f'"{value}"' if "'" in value and '"' not in value else "'" + value.replace("'", "''") + "'"
    shown = shown if len(shown) <= 60 else "'…'"
    return f"the value of '{key}' has a colon; put it in quotation marks: {mark}{key}: {shown}"


def parse_yaml_mapping(text: str, first_line: int) -> tuple[dict[str, YamlEntry], list[tuple[str, YamlEntry]]]:
    """Parse a mapping; ``first_line`` is the file's line on which the text starts.

    Returns:
        The entries by key, and the repeated ones.

    Raises:
        InvalidYaml: the text is not YAML, or not a mapping.
    """
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        raise InvalidYaml(first_line + (mark.line if mark else 0), e.problem or "it is not YAML") from e
    except yaml.reader.ReaderError as e:
        line = text.count("\n", 0, e.position)
        raise InvalidYaml(first_line + line, f"the character U+{e.character:04X} is not allowed here") from e
    except (yaml.YAMLError, ValueError, RecursionError, IndexError) as e:
        raise InvalidYaml(first_line, "it is not YAML") from e
    if node is None:
        return {}, []
    if not isinstance(node, yaml.MappingNode):
        raise InvalidYaml(first_line, "it is not a list of 'key: value' lines")
    return _entries(node, first_line)


def _entries(node: yaml.MappingNode, first_line: int) -> tuple[dict[str, YamlEntry], list[tuple[str, YamlEntry]]]:
    entries: dict[str, YamlEntry] = {}
    repeated = []
    budget = [MAX_NODES]
    for key_node, value_node in node.value:
        line = first_line + key_node.start_mark.line
        if not isinstance(key_node, yaml.ScalarNode):
            raise InvalidYaml(line, "a key must be a plain word")
        entry = YamlEntry(_plain_value(value_node, budget, line), line)
        if key_node.value in entries:
            repeated.append((key_node.value, entry))
        else:
            entries[key_node.value] = entry
    return entries, repeated


def _plain_value(node: yaml.Node, budget: list[int], line: int) -> YamlValue:
    budget[0] -= 1
    if budget[0] < 0:
        raise InvalidYaml(line, "it is too large")
    if isinstance(node, yaml.SequenceNode):
        return [_plain_value(item, budget, line) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {str(getattr(key, "value", "")): _plain_value(value, budget, line) for key, value in node.value}
    return str(node.value)
