"""Recognizes the exceptions by which a script exits cleanly. Used inside the sandbox and outside. Pure."""

from __future__ import annotations


def is_clean_exit(name: str, value: str) -> bool:
    """Whether an exception of this name and text is a clean exit of the script and not an error."""
    return name == "SystemExit" and value in ("", "0", "None")
