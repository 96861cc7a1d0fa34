"""Puts what the application needs besides its packages into the wheel: the lessons, the migrations and the front end.

An editable installation finds them in the checkout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FRONT_END = "app/web/static/dist"
_FOLDERS = ("lessons", "migrations")


class WheelContents(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files that a wheel adds; ``app.settings.project_folder`` finds them.

        Raises:
            FileNotFoundError: the front end has not been built.
        """
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / _FRONT_END).is_dir():
            raise FileNotFoundError(f"{_FRONT_END} is missing. Run 'make setup' first: it builds the front end.")
        build_data["force_include"] |= {str(root / name): f"app/bundled/{name}" for name in _FOLDERS}
