"""Checks a cell's Python without running it: whether it parses, and whether two versions do the same.

IPython's magics are allowed: a line with a syntax error that starts with ``%``, ``!`` or ``?`` counts as a statement.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

MAGIC_PATTERN = re.compile(r"^(?P<indent>\s*)(?P<target>[\w.,][\w.,\s]*=\s*)?(?P<magic>[%!?].*)$")
_MAX_MAGICS = 100
_PYTHON_CELL_MAGICS = {"%%time", "%%timeit", "%%capture", "%%prun"}


@dataclass(frozen=True, slots=True)
class SyntaxIssue:
    """Why code does not parse; ``line`` counts from 1."""

    line: int
    reason: str


def find_syntax_issue(code: str) -> SyntaxIssue | None:
    """Why the code is not valid Python; None if it is."""
    plain, _ = without_magics(code)
    compiled = _compile_guarded(plain, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return compiled if isinstance(compiled, SyntaxIssue) else None


def without_magics(code: str) -> tuple[str, list[str]]:
    """The code with magics replaced by ``pass``, line by line; and the magics."""
    lines = code.split("\n")
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and first.split()[0] not in _PYTHON_CELL_MAGICS:
        return "\n" * (len(lines) - 1), [code]
    magics: list[str] = []
    for _ in range(_MAX_MAGICS):
        fault = _parse("\n".join(lines))
        at = fault.line - 1 if isinstance(fault, SyntaxIssue) else len(lines)
        match = MAGIC_PATTERN.match(lines[at]) if at < len(lines) else None
        if match is None:
            break
        start, end = at, at
        while end + 1 < len(lines) and lines[end].rstrip().endswith("\\"):
            end += 1  # a command of the shell that goes on
        magics.append("\n".join(line.strip() for line in lines[start : end + 1]))
        lines[start : end + 1] = [f"{match['indent']}pass", *[""] * (end - start)]
    return "\n".join(lines), magics


def same_code(one: str, other: str) -> bool:
    """Whether two cells differ only in comments, strings and whitespace. Code that does not parse must be equal."""
    return one == other or _normalized_ast(one) == _normalized_ast(other)


def _normalized_ast(code: str) -> tuple[str, list[str]]:
    plain, magics = without_magics(code)
    tree = _parse(plain)
    if isinstance(tree, SyntaxIssue):
        return code, magics
    try:
        return ast.dump(_TextRemover().visit(tree)), magics
    except RecursionError:
        return code, magics


class _TextRemover(ast.NodeTransformer):
    """Empties all strings, and sorts the parts of f-strings, because their order depends on the language."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        inserted = [self.visit(part) for part in node.values if isinstance(part, ast.FormattedValue)]
        return ast.JoinedStr(sorted(inserted, key=ast.dump)) if inserted else ast.Constant("")


def _parse(code: str) -> ast.AST | SyntaxIssue:
    return _compile_guarded(code, ast.PyCF_ONLY_AST)


def _compile_guarded(code: str, flags: int) -> ast.AST | SyntaxIssue:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree: ast.AST = compile(code, "<cell>", "exec", flags, dont_inherit=True)
    except SyntaxError as e:
        return SyntaxIssue(max(e.lineno or 1, 1), e.msg or "invalid syntax")
    except (ValueError, OverflowError, RecursionError, MemoryError) as e:
        return SyntaxIssue(1, str(e) or "it is nested too deeply")
    return tree
