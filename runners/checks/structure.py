"""How a submission is written: what its results are made of, and whether it leaves alone what it is judged with.

Both read names only and follow no values, so they accept any honest way to write a solution, and code that contains the
solution without needing it, too. Combine them with a check of behavior.
"""

from __future__ import annotations

import ast
import symtable
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from runners.checks.compare import CheckFailed
from runners.checks.work import Work
from runners.wire import check_messages as messages

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_FROM_TENSORS = frozenset(
    {"graph", "_graph", "op", "_op", "inputs", "_inputs", "consumers", "_consumers", "get_default_graph"}
)
"""Attributes that lead from a tensor to its graph: from a replica's share to the whole batch. Harmless as variables, as
keys of a dictionary, and of what the submission has made outside functions, where there are no shares."""
_BACK_DOORS = frozenset(
    {
        *("eval", "exec", "globals", "locals", "vars", "setattr", "delattr", "builtins", "__builtins__"),
        *("get_ipython", "IPython", "InteractiveShell", "user_ns", "__main__", "modules", "importlib", "mock"),
        *_FROM_TENSORS,
        *("f_globals", "f_locals", "currentframe", "_getframe", "get_referrers", "get_referents", "get_objects"),
        *("getclosurevars", "ctypes", "pythonapi"),
        *("__closure__", "__code__", "__defaults__", "__dict__", "__getattribute__", "__globals__", "__import__"),
        *("__setattr__", "__wrapped__", "getattr", "attrgetter", "methodcaller", "outer_graph"),
        *("__get__", "fget", "getattr_static", "getmembers", "getmembers_static"),
        *("tb_frame", "gi_frame", "cr_frame", "ag_frame", "f_builtins", "f_back"),
        *("update_wrapper", "wraps", "setitem", "delitem", "__setitem__", "__delitem__"),
    }
)
"""Names with which code can change variables unseen. A hurdle and not a wall: whoever looks long enough finds more."""
_RUN_TEXT = frozenset(
    {"bdb", "cProfile", "cloudpickle", "code", "codeop", "dill", "doctest", "marshal", "pdb", "pickle", "profile"}
    | {"runpy", "shelve", "timeit", "trace"}
)
"""Modules that run code given as text or bytes. As names of variables and attributes, the words are harmless."""


def names_behind(work: Work, function: str) -> frozenset[str]:
    """The names that what ``function`` returns depends on: functions, given variables, attributes such as ``cache``.

    Followed are assignments, loops, ``with``, calls of methods that may change a variable, helper functions, and
    imports under another name. Variables and parameters that the submission names itself are not among them, nor is
    what a result does not depend on. Empty if there is no such function.

    Args:
        work: the submission.
        function: the name of a function that it defines.
    """
    sources, own = _sources(work.tree), _own_variables(work.tree)
    waiting = [result for definition in sources.pop(function, []) for result in _results(definition)]
    followed: set[str] = set()
    found: set[str] = set()
    while waiting:
        names, attributes = _mentioned(waiting.pop())
        found |= attributes | names - own
        for name in (names | attributes) - followed:
            followed.add(name)
            waiting += sources.get(name, [])
    return frozenset(found)


def untouched(work: Work, *given: str) -> None:
    """Fail if the submission replaces or changes what the lesson gives it and the check relies on.

    It may call what is given, pass it on, and use the same name for variables within its functions. It may not set
    attributes of anything but variables of its own, such as those of ``tf``.

    Args:
        work: the submission.
        given: names of functions and variables that a needed cell defines.
    """
    tables = list(_scopes(symtable.symtable(ast.unparse(work.tree), "submission", "exec")))
    read = {symbol.get_name() for table in tables for symbol in table.get_symbols() if _is_global_read(table, symbol)}
    harmless = {"getattr"} | _FROM_TENSORS - {"get_default_graph"}
    own = _own_objects(work.tree, tables[1:])
    reached = (_reached(node) - _FROM_TENSORS if node in own else _reached(node) for node in ast.walk(work.tree))
    back_doors = (read - harmless).union(*reached) & _BACK_DOORS
    back_doors |= set().union(*map(_imported_modules, ast.walk(work.tree))) & _RUN_TEXT
    if back_doors:
        name = min(back_doors)
        magic = name == "get_ipython" and name not in work.source
        raise CheckFailed(messages.BACK_DOOR, {"name": "%" if magic else name})
    bound = {symbol.get_name() for table in tables for symbol in table.get_symbols() if _is_global_bound(table, symbol)}
    if changed := bound.union(_changes(work.tree)) & set(given):
        raise CheckFailed(messages.GIVEN, {"name": min(changed)})
    if patched := set().union(*map(_patched, ast.walk(work.tree))) - _own_variables(work.tree):
        raise CheckFailed(messages.GIVEN, {"name": min(patched)})


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _is_global_read(table: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    return symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global())


def _is_global_bound(table: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    binds = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    return binds and (table.get_type() == "module" or symbol.is_declared_global())


def _reached(node: ast.AST) -> set[str]:
    """The attributes that a node reads, the names that it imports, and those that it asks for as text."""
    match node:
        case ast.Attribute(attr=name, ctx=context):
            return {name} if isinstance(context, ast.Load) else {name} - _FROM_TENSORS
        case ast.MatchClass(kwd_attrs=names):
            return set(names)
        case ast.ImportFrom(module=str(path), names=aliases):
            return {*path.split("."), *(alias.name for alias in aliases)}
        case ast.Import(names=aliases):
            return {part for alias in aliases for part in alias.name.split(".")}
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return {name} - _FROM_TENSORS
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return {name}
        case ast.Call(func=ast.Name(id="getattr" as name)):
            return {name}
    return set()


def _imported_modules(node: ast.AST) -> set[str]:
    match node:
        case ast.ImportFrom(module=str(path)):
            return {path.split(".")[0]}
        case ast.Import(names=aliases):
            return {alias.name.split(".")[0] for alias in aliases}
    return set()


def _own_objects(tree: ast.AST, inner: Sequence[symtable.SymbolTable]) -> set[ast.AST]:
    """The reads of an attribute of what a call outside functions returned, where there are no shares: no tensor's.

    A variable counts if only such calls give it a value, and if no scope of ``inner``, those of functions and classes,
    has a variable of that name or sets it.
    """
    outside = set(_outside_functions(tree))
    inside = {symbol.get_name() for table in inner for symbol in table.get_symbols() if _is_bound_in(symbol)}
    sources = {name: values for name, values in _sources(tree).items() if name not in inside}
    made = {name for name, values in sources.items() if all(isinstance(value, ast.Call) for value in values)}
    reads = {node: node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    variables = {node for node, value in reads.items() if isinstance(value, ast.Name) and value.id in made}
    return variables | {node for node, value in reads.items() if isinstance(value, ast.Call) and node in outside}


def _is_bound_in(symbol: symtable.Symbol) -> bool:
    return not symbol.is_global() or symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are evaluated as soon as the submission runs."""
    for part in ast.iter_child_nodes(node):
        yield part
        if not isinstance(part, (*_FUNCTIONS, ast.GeneratorExp)):
            yield from _outside_functions(part)


def _changes(node: ast.AST, local: frozenset[str] = frozenset()) -> Iterator[str]:
    """What code may change, without what ``local`` names: variables of the functions around it."""
    yield from _changed(node, local)
    body = _body(node)
    within, inside = _local_within(node, body, local) if body else local, set(body)
    for part in ast.iter_child_nodes(node):
        yield from _changes(part, within if part in inside else local)


def _body(node: ast.AST) -> Sequence[ast.AST]:
    """What runs in a scope of its own, unlike decorators and default values."""
    match node:
        case ast.Lambda(body=result):
            return [result]
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            return body
    return []


def _local_within(scope: ast.AST, body: Sequence[ast.AST], local: frozenset[str]) -> frozenset[str]:
    """The variables in a body that no other code sees.

    Nothing is local to a class, where a name may be a global variable until it is set.
    """
    if not isinstance(scope, _FUNCTIONS):
        return frozenset()
    nodes = [part for statement in body for part in _with_own_nodes(statement)]
    looped = {part for node in nodes if isinstance(node, ast.comprehension) for part in ast.walk(node.target)}
    bound = {node.id for node in nodes if _is_bound(node) and node not in looped}
    parameters = {part.arg for part in ast.iter_child_nodes(scope.args) if isinstance(part, ast.arg)}
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    return (local | bound | parameters) - shared


def _changed(node: ast.AST, local: frozenset[str]) -> set[str]:
    """The objects whose attributes or items a node may change, and those attributes and items."""
    match node:
        case ast.Attribute(value=ast.Name(id=name)):
            return {name} - local
        case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.Subscript(value=ast.Name(id=name), slice=index, ctx=ast.Store() | ast.Del()):
            items = {str(part.value) for part in ast.walk(index) if isinstance(part, ast.Constant)}
            return {name} - local | items
    return set()


def _patched(node: ast.AST) -> set[str]:
    """The variables of whose attributes a node sets one."""
    return set(_roots(node)) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) else set()


def _sources(tree: ast.AST) -> defaultdict[str, list[ast.AST]]:
    """For each name, the parts of the code that give it its value."""
    sources: defaultdict[str, list[ast.AST]] = defaultdict(list)
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                imported.add(name)
                sources[name].append(alias)
        for target, value in _bindings(node):
            for name in _roots(target):
                sources[name].append(value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for name in _roots(node.func):
                if name in sources and name not in imported:  # it may change the variable it is called on
                    sources[name].append(node)
    return sources


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield ast.Name(node.name), node
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield target, value
        case ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated):
            yield target, iterated
        case ast.withitem(optional_vars=ast.expr() as target, context_expr=entered):
            yield target, entered


def _own_variables(tree: ast.AST) -> set[str]:
    """Variables and parameters that the code binds, without functions, classes and imports."""
    bound = [(target, value) for node in ast.walk(tree) for target, value in _bindings(node)]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    targets = [target for target, value in bound if not isinstance(value, definitions)]
    names = {part.id for target in targets for part in ast.walk(target) if _is_bound(part)}
    return names | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _roots(target: ast.AST) -> Iterator[str]:
    """The variables that an assignment to ``target`` changes: ``a`` of ``a``, of ``a.b[c]``, and of ``(a, b)``."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            yield from _roots(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _roots(part)


def _results(definition: ast.AST) -> Iterator[ast.AST]:
    """What a function returns or yields; anything else is its own result."""
    if isinstance(definition, ast.Lambda):
        yield definition.body
    elif isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for node in _own_nodes(definition):
            if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value:
                yield node.value
    else:
        yield definition


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    for node in ast.iter_child_nodes(function):
        yield from _with_own_nodes(node)


def _with_own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield from _own_nodes(node)


def _mentioned(part: ast.AST) -> tuple[set[str], set[str]]:
    """The variables that a part of the code reads, and the attributes and imported names."""
    names, attributes = set(), set()
    for node in ast.walk(part):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Attribute(attr=name):
                attributes.add(name)
            case ast.alias(name=path):
                attributes |= set(path.split("."))
    return names, attributes
