"""Lets completion and inspection know what the imports of a cell will bring before the cell has run.

Only modules that are loaded already count, such as TensorFlow and NumPy: nothing is imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_IMPORT = re.compile(r"^(?:import|from)[ \t][^\n]{1,300}$", re.MULTILINE)
_MOST = 100


@contextmanager
def imported_names(code: str, namespace: dict[str, Any]) -> Iterator[None]:
    """Add the names that the imports of ``code`` bind to ``namespace`` for a moment, unless it has them."""
    added = {name: value for name, value in _bindings(code) if name not in namespace}
    namespace.update(added)
    try:
        yield
    finally:
        for name, value in added.items():
            if namespace.get(name) is value:
                del namespace[name]


def _bindings(code: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(_IMPORT.finditer(code)):
        if number >= _MOST:
            return
        with suppress(SyntaxError, ValueError):
            for statement in ast.parse(line[0]).body:
                if isinstance(statement, ast.Import):
                    yield from _modules(statement)
                elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
                    yield from _members(statement.module, statement)


def _modules(statement: ast.Import) -> Iterator[tuple[str, Any]]:
    for alias in statement.names:
        first = alias.name.split(".")[0]
        if (found := _loaded(alias.name if alias.asname else first)) is not None:
            yield alias.asname or first, found


def _members(module: str, statement: ast.ImportFrom) -> Iterator[tuple[str, Any]]:
    for alias in statement.names:
        if (found := _loaded(f"{module}.{alias.name}")) is not None:
            yield alias.asname or alias.name, found


def _loaded(name: str) -> Any:
    """The module, or the member of a module, if it is loaded."""
    if name in sys.modules:
        return sys.modules[name]
    parent, _, last = name.rpartition(".")
    return getattr(_loaded(parent), last, None) if parent else None
