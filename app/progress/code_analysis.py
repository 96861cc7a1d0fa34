"""What a cell's code does, as far as its syntax tells. Pure; code that cannot be parsed does nothing.

Only statements that are certain to run if the run ends ``ok`` count: not those in a branch, in a function that may not
be called, or in a ``try`` block.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

STRATEGY_CLASSES = (
    "CentralStorageStrategy",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
)
_DISTRIBUTE_MODULES = frozenset({"tensorflow.distribute", "tensorflow.distribute.experimental"})
_MAGIC = re.compile(r"^([^\S\n]*)[%!].*$", re.MULTILINE)
"""Matches within a line: whitespace that included empty lines would take quadratic time."""
_COMPUTE_AVERAGE_LOSS = "tensorflow.nn.compute_average_loss"
_MAX_CHARACTERS = 20_000
"""Longer code is not analyzed, because this delays storing the run's end."""
_EMPTY_MODULE = ast.dump(ast.Module([], []))
_PREIMPORTED = {"tf": "tensorflow"}
"""Names that an earlier cell of the lesson may have imported."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONDITIONAL_NODES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.If,
    ast.While,
    ast.Try,
    ast.IfExp,
    ast.BoolOp,
)


def used_strategies(text: str) -> list[str]:
    """The strategy classes of ``tf.distribute`` that the code instantiates, by name."""
    tree = _parse(text)
    names = _import_aliases(tree)
    made = set()
    for call in _calls(_always_executed(tree)):
        package, _, name = _qualified_name(call.func, names).rpartition(".")
        if package in _DISTRIBUTE_MODULES and name in STRATEGY_CLASSES:
            made.add(name)
    return sorted(made)


def scales_loss(text: str) -> bool:
    """Whether ``tf.nn.compute_average_loss`` is called with a global batch size anywhere, even in a function."""
    tree = _parse(text)
    names = _import_aliases(tree)
    return any(
        _qualified_name(call.func, names) == _COMPUTE_AVERAGE_LOSS
        and any(word.arg == "global_batch_size" and not _is_none(word.value) for word in call.keywords)
        for call in _calls(ast.walk(tree))
    )


def is_unchanged(one: str, other: str) -> bool:
    """Whether two pieces of code differ only in comments and layout, or cannot be compared."""
    if one == other:
        return True
    try:
        trees = [ast.dump(_parse(text)) for text in (one, other)]
    except RecursionError:
        return True
    return trees[0] == trees[1] or trees[0] == _EMPTY_MODULE


def _parse(text: str) -> ast.Module:
    if len(text) > _MAX_CHARACTERS or text.startswith("%%"):
        return ast.Module([], [])
    try:
        return ast.parse(_MAGIC.sub(r"\1pass", text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def _always_executed(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node that is evaluated whenever the code runs to its end."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.For | ast.AsyncFor):
            waiting.append(node.iter)
        elif isinstance(node, _COMPREHENSIONS):
            waiting.append(node.generators[0].iter)
        elif not isinstance(node, _CONDITIONAL_NODES):
            waiting += ast.iter_child_nodes(node)


def _import_aliases(tree: ast.Module) -> dict[str, str]:
    """The full name of each imported name."""
    names = dict(_PREIMPORTED)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = ""  # the name is reassigned
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names[node.name] = ""
    return names


def _qualified_name(node: ast.expr, names: dict[str, str]) -> str:
    """A name such as ``tf.distribute.X`` with its import resolved; "" for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    start = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([start, *reversed(parts)]) if start else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
