"""Answers ``%pip install`` and ``!pip install`` at once.

Many notebooks begin with one of them. A sandbox has neither pip nor a network, so the answer is what is installed.
"""

from __future__ import annotations

import re
import shlex
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement

from runners.wire.supplied_modules import SUPPLIED_MODULES

_COMMAND = re.compile(r"\s*(?:python[0-9.]*\s+-m\s+)?pip[0-9.]*\s+([^;&|<>$`\n]*)")
"""A shell command that runs pip and nothing else."""
_WITH_VALUE = frozenset(
    [
        "-i",
        "--index-url",
        "--extra-index-url",
        "-f",
        "--find-links",
        "-c",
        "--constraint",
        "-t",
        "--target",
        "--timeout",
    ]
)
"""Options of ``pip install`` that are followed by a value."""
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")
"""Packages of the same modules: which of them is installed depends on the machine."""
_OPERATOR = "Only the people who run this site can add it."
_NO_NETWORK = "the sandbox has no network to install {} from"


def answer_command(command: str) -> str | None:
    """The answer to a shell command, or None if it is not pip's alone. Depends on what is installed."""
    found = _COMMAND.fullmatch(command)
    return None if found is None else answer_pip(found[1])


def answer_pip(arguments: str) -> str:
    """The answer to ``pip`` with these arguments: a line for each package. Depends on what is installed."""
    try:
        words = shlex.split(arguments)
    except ValueError as e:
        return f"pip: {e}"
    if words[:1] == ["install"] and (packages := _packages(words[1:])):
        return "\n".join(_answer(package) for package in packages)
    return f"The sandbox has no pip, because {_NO_NETWORK.format('packages')}."


def _packages(words: list[str]) -> list[str]:
    found, rest = [], iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            found.append(word)
    return found


def _answer(word: str) -> str:
    try:
        wanted = Requirement(word)
    except InvalidRequirement:
        return f"{word} cannot be installed: {_NO_NETWORK.format('it')}."
    if (version := _version(wanted.name)) is None:
        if wanted.name.replace("-", "_") in SUPPLIED_MODULES:
            return f"{wanted.name}: Lockstep's own version is installed."
        return f"{wanted.name} is not installed, and {_NO_NETWORK.format('it')}. {_OPERATOR}"
    if wanted.url is None and wanted.specifier.contains(version, prereleases=True):
        return f"{wanted.name} {version} is installed."
    return f"{wanted.name} {version} is installed, and {_NO_NETWORK.format('another version')}."


def _version(name: str) -> str | None:
    for each in _TENSORFLOW if name in _TENSORFLOW else (name,):
        try:
            return metadata.version(each)
        except metadata.PackageNotFoundError:
            continue
    return None
