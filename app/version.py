"""Which version of Lockstep this is: the installed package's, and the commit if it runs from a checkout."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_CHECKOUT = Path(__file__).parents[1]
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SHOWN_DIGITS = 8


def lockstep_version() -> str:
    """The version that the installed package states; ``unknown`` if none is installed."""
    try:
        return version("lockstep")
    except PackageNotFoundError:
        return "unknown"


def described_version() -> str:
    """The version for people: ``0.1.0``, or ``0.1.0, commit 2fab3f42``."""
    commit = checkout_commit(_CHECKOUT)
    return f"{lockstep_version()}, commit {commit[:_SHOWN_DIGITS]}" if commit else lockstep_version()


def checkout_commit(folder: Path) -> str:
    """The commit that is checked out in a folder; empty if it is not a clone.

    Reads two small files: starting git takes longer, and git refuses a clone of another user.
    """
    repository = folder / ".git"
    with suppress(OSError, UnicodeDecodeError):
        head = (repository / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else ""
        branch = head.removeprefix("ref: ")
        with suppress(OSError):
            return commit if _COMMIT.fullmatch(commit := (repository / branch).read_text().strip()) else ""
        for line in (repository / "packed-refs").read_text().splitlines():
            commit, _, name = line.partition(" ")
            if name == branch and _COMMIT.fullmatch(commit):
                return commit
    return ""
