"""How a script ends itself: said inside the sandbox, where nothing is shown of it, and judged outside. Pure."""

from __future__ import annotations


def is_clean_exit(name: str, value: str) -> bool:
    """Whether an exception of this name and text is no error, but the script's own end."""
    return name == "SystemExit" and value in ("", "0", "None")
