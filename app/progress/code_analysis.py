"""What a cell's code does, as far as its syntax tells. Pure; code that cannot be parsed does nothing.

Only what is certain to run if the run ends ``ok`` counts: not what is in a branch, in a function that may not be
called, or in a ``try`` or ``with`` block, which an error may end early. Kinds of code that are not listed as certain,
such as those of later Pythons, do not count.
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
_MAGIC = re.compile(r"^([^\S\n]*)[%!](?:.*\\\r?\n)*.*$", re.MULTILINE)
"""Matches a line, and those that continue it: whitespace that included empty lines would take quadratic time."""
_TRIPLE_QUOTE = re.compile(r"\"{3}|'{3}")
_COMPUTE_AVERAGE_LOSS = "tensorflow.nn.compute_average_loss"
_MAX_CHARACTERS = 20_000
"""Longer code is not analyzed, because this delays storing the run's end."""
_EMPTY_MODULE = ast.dump(ast.Module([], []))
_PREIMPORTED = {"tf": "tensorflow"}
"""Names that an earlier cell of the lesson may have imported."""
_WHOLE_NODES = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.Delete),
    *(ast.Call, ast.keyword, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Await, ast.NamedExpr),
    *(ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue),
)
"""The kinds of code of which every part runs."""


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
    """The tree of a cell whose magics are left out; empty for the cell of a cell magic, which need not be Python.

    IPython removes leading blank lines and indents before it looks for one. Magics that contain triple quotes may be
    parts of strings.
    """
    if len(text) > _MAX_CHARACTERS or text.lstrip().startswith("%%"):
        return ast.Module([], [])
    if any(_TRIPLE_QUOTE.search(magic[0]) for magic in _MAGIC.finditer(text)):
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
        waiting += _certain_parts(node)


def _certain_parts(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of some code that run whenever it does."""
    match node:
        case ast.AnnAssign(value=value):
            return [value] if value else []  # an annotation may be only text
        case ast.Assert(test=first) | ast.IfExp(test=first) | ast.For(iter=first) | ast.AsyncFor(iter=first):
            return [first]
        case ast.With(items=[ast.withitem(context_expr=first), *_]):
            return [first]  # this context may end those after it, and the block
        case ast.AsyncWith(items=[ast.withitem(context_expr=first), *_]):
            return [first]
        case ast.BoolOp(values=[first, *_]):
            return [first]
        case ast.Compare(left=left, comparators=[first, *_]):
            return [left, first]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [node.generators[0].iter]
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords, *node.body]
    return ast.iter_child_nodes(node) if isinstance(node, _WHOLE_NODES) else []


def _import_aliases(tree: ast.Module) -> dict[str, str]:
    """The full name of each imported name; "" for names that have other meanings, too, wherever they get them."""
    names = dict(_PREIMPORTED)
    for name, meaning in _bindings(tree):
        names[name] = meaning if names.get(name, meaning) == meaning else ""
    return names


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield alias.asname or first, alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full_name = f"{node.module}.{alias.name}" if node.module and not node.level else ""
                yield alias.asname or alias.name, full_name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, ""
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, ""


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
