"""Which packages the code of cells imports that are not installed, and how an operator installs them."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder

from app.lessons.python_source import without_magics
from runners.wire.supplied_modules import SUPPLIED_MODULES

SCIENCE = frozenset(["networkx", "numba", "quantecon", "scipy", "seaborn", "sklearn", "statsmodels", "sympy"])
"""The modules of the extra ``science``."""


def imported_modules(code: str) -> Iterator[str]:
    """The names of the modules that a cell cannot do without: not those that it tries to import, or imports later."""
    plain, _ = without_magics(code)
    try:
        with warnings.catch_warnings(action="ignore"):
            body = ast.parse(plain).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (name.name.partition(".")[0] for name in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]


def is_installed(module: str) -> bool:
    """Whether a module can be imported where this runs, or in each session."""
    return module in SUPPLIED_MODULES or module in sys.stdlib_module_names or PathFinder.find_spec(module) is not None


@cache
def is_missing(module: str) -> bool:
    """Whether sessions that are started here lack a module. False if the runner is installed elsewhere."""
    return not is_installed(module) and PathFinder.find_spec("tensorflow") is not None


def how_to_install(module: str) -> str:
    """What an operator does about a missing module."""
    if module in SCIENCE:
        return "'make setup SCIENCE=1' installs it, see docs/operate/packages.md"
    return "install its package where code runs, see docs/operate/packages.md"
