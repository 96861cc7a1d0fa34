"""What a cell's code does, as far as its syntax tells. Pure; code that cannot be parsed does nothing.

Only what is certain to run if the run ends ``ok`` counts: not what is in a branch, in a function that may not be
called, in a ``try`` block, which an error may end early, or in a ``with`` block whose context may hide the error. Kinds
of code that are not listed as certain, such as those of later Pythons, do not count.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

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
_PREIMPORTED = {"tf": "tensorflow", "open": "open"}
"""Names that an earlier cell of the lesson may have imported, or that need no import."""
_WHOLE_NODES = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.Delete),
    *(ast.Call, ast.keyword, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Await, ast.NamedExpr),
    *(ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.FormattedValue),
)
"""The kinds of code of which every part runs."""
_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.MatchAs, ast.MatchStar, ast.ExceptHandler)
"""The kinds of code that give a name another meaning."""
_TRANSPARENT_CONTEXTS = frozenset(
    {
        *(f"tensorflow.{name}" for name in ("device", "GradientTape", "init_scope", "name_scope")),
        *("contextlib.closing", "contextlib.nullcontext", "contextlib.redirect_stdout", "contextlib.redirect_stderr"),
        *("open", "tempfile.TemporaryDirectory", "warnings.catch_warnings"),
    }
)
"""What can be called for a context that hides no error, as can ``scope`` of a strategy."""


def used_strategies(text: str) -> list[str]:
    """The strategy classes of ``tf.distribute`` that the code instantiates, by name."""
    tree = _parse(text)
    names = _import_aliases(tree)
    made = {_strategy_class(call.func, names) for call in _calls(_always_executed(tree, names))}
    return sorted(name for name in made if name)


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


def _strategy_class(called: ast.expr, names: Mapping[str, str]) -> str | None:
    package, _, name = _qualified_name(called, names).rpartition(".")
    return name if package in _DISTRIBUTE_MODULES and name in STRATEGY_CLASSES else None


def _calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def _always_executed(tree: ast.Module, names: Mapping[str, str]) -> Iterator[ast.AST]:
    """Every node that is evaluated whenever the code runs to its end; ``names`` are those of ``_import_aliases``."""
    strategies = _strategy_variables(tree, names)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _parts_of_with(node, names, strategies) if isinstance(node, ast.With) else _certain_parts(node)


def _parts_of_with(node: ast.With, names: Mapping[str, str], strategies: Set[str]) -> Iterator[ast.AST]:
    """The contexts up to the first one that may hide an error of what follows; after the last one, the block."""
    for item in node.items:
        yield item.context_expr
        if not _hides_nothing(item.context_expr, names, strategies):
            return
    yield from node.body


def _hides_nothing(context: ast.expr, names: Mapping[str, str], strategies: Set[str]) -> bool:
    """Whether an error in the block of this context is an error of the code."""
    match context:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="scope")):
            return name in strategies or name not in names  # that of an earlier cell, as ``tf`` is TensorFlow
        case ast.Call(func=ast.Attribute(value=ast.Call(func=made), attr="scope")):
            return _strategy_class(made, names) is not None
        case ast.Call(func=made):
            return _qualified_name(made, names) in _TRANSPARENT_CONTEXTS
    return False


def _strategy_variables(tree: ast.Module, names: Mapping[str, str]) -> set[str]:
    """The variables to which nothing is ever assigned but strategies."""
    made: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)) if _strategy_class(func, names):
                made[name] += 1
    bound = Counter(name for name, _ in _bindings(tree))
    return {name for name, count in made.items() if bound[name] == count}


def _certain_parts(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of some code that run whenever it does."""
    match node:
        case ast.AnnAssign(value=value):
            return [value] if value else []  # an annotation may be only text
        case ast.Assert(test=first) | ast.IfExp(test=first) | ast.For(iter=first) | ast.AsyncFor(iter=first):
            return [first]
        case ast.AsyncWith(items=[ast.withitem(context_expr=first), *_]):
            return [first]  # this context may end those after it, and the block
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
    """Each name that is given a meaning, with that. None is no other meaning: what is not there cannot be called."""
    nodes = list(ast.walk(tree))
    emptied = {
        target for node in nodes if isinstance(node, ast.Assign) and _is_none(node.value) for target in node.targets
    }
    for node in nodes:
        if node in emptied:
            continue
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
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield _root(node), ""
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or "", ""
        elif isinstance(node, _NAMED):
            yield node.name or "", ""


def _root(node: ast.expr) -> str:
    """The variable at the start of ``a.b.c``; "" if there is none."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _qualified_name(node: ast.expr, names: Mapping[str, str]) -> str:
    """A name such as ``tf.distribute.X`` with its import resolved; "" for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    start = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([start, *reversed(parts)]) if start else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
