"""Changes a module right after its import, for modules that may be imported later or never."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

Change = Callable[[ModuleType], None]


def call_after_import(module: str, change: Change) -> None:
    """Call ``change`` with a module that is not imported yet, right after its code has run."""
    if not any(finder is _waiting for finder in sys.meta_path):
        sys.meta_path.insert(0, _waiting)
    _waiting.changes.setdefault(module, []).append(change)


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the import of modules."""

    def __init__(self) -> None:
        self.changes: dict[str, list[Change]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        changes = self.changes.get(fullname)
        if changes is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, changes)
        return spec


class _Loader(importlib.abc.Loader):
    """Runs the real loader, and then makes the changes."""

    def __init__(self, real: importlib.abc.Loader, changes: list[Change]) -> None:
        self._real = real
        self._changes = changes

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        for change in self._changes:
            change(module)


_waiting = _Finder()
