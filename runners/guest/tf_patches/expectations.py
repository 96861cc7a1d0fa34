"""Checks whether a library is as a patch expects. Calls nothing: reads only names, parameters and code."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

MISSING = object()


class Moved(LookupError):
    """A library is not as expected. ``str()`` is a clause that says what differs."""


def check(
    target: str,
    relies_on: Sequence[str] = (),
    used_by: Sequence[str] = (),
    *,
    adds: bool = False,
    may_wait: bool = False,
) -> None:
    """Compare a target with what a patch declares about it (see ``registry.Declaration``).

    Args:
        target: ``module:name``.
        relies_on: see ``Declaration``.
        used_by: see ``Declaration``.
        adds: whether the patch adds the target, so that it must not exist yet.
        may_wait: only check whether the module exists, without importing it.

    Raises:
        Moved: the first difference.
    """
    if may_wait:
        module = target.partition(":")[0]
        if importlib.util.find_spec(module) is None:
            raise Moved(f"there is no module {module}")
        return
    owner, name, found = find(target)
    if adds and found is not MISSING:
        raise Moved("it already exists")
    if not adds and found is MISSING:
        raise Moved("it does not exist")
    for need in relies_on:
        if need.startswith("("):
            _check_parameters(found, need)
        elif need.startswith("."):
            _check_attribute(owner, need[1:])
        else:
            other_owner, other_name, _ = find(need)
            _check_attribute(other_owner, other_name)
    for user in used_by:
        _check_mention(user, name)


def find(target: str) -> tuple[Any, str, Any]:
    """Find the module or class that holds a target, the target's name there, and the target itself, or ``MISSING``.

    Raises:
        Moved: there is no such module or class.
    """
    module, _, path = target.partition(":")
    *outer, name = path.split(".")
    try:
        owner = functools.reduce(getattr, outer, sys.modules.get(module) or importlib.import_module(module))
    except ImportError:
        raise Moved(f"there is no module {module}") from None
    except AttributeError:
        raise Moved(f"there is no {'.'.join(outer)} in {module}") from None
    found = inspect.getattr_static(owner, name, MISSING)
    return owner, name, getattr(owner, name, MISSING) if found is MISSING else found


def _check_parameters(found: Any, expected: str) -> None:
    try:
        parameters = inspect.signature(_function(found)).parameters.values()
    except (TypeError, ValueError):  # it is no longer a function, or one in C without a signature
        raise Moved(f"its parameters cannot be read, and should be {expected}") from None
    names = [str(each.replace(default=each.empty, annotation=each.empty)) for each in parameters]
    wanted = [word.strip() for word in expected.strip("()").split(",") if word.strip()]
    if names != wanted and not (wanted[-1:] == ["..."] and names[: len(wanted) - 1] == wanted[:-1]):
        raise Moved(f"it takes ({', '.join(names)}) instead of {expected}")


def _function(found: Any) -> Any:
    """The function behind a property, a class method or a static method."""
    return found.fget if isinstance(found, property) else getattr(found, "__func__", found)


def _check_attribute(owner: Any, name: str) -> None:
    if not hasattr(owner, name) and not (isinstance(owner, type) and name in _attributes(owner)):
        raise Moved(f"{owner.__name__} has no {name}")


@functools.cache
def _attributes(owner: type) -> frozenset[str]:
    """The names that the code of a class and its bases mentions, which include its instances' attributes."""
    functions = [
        inspect.unwrap(each) for base in owner.__mro__ for each in vars(base).values() if inspect.isfunction(each)
    ]
    return frozenset(name for function in functions for name in _names(function.__code__))


def _check_mention(user: str, name: str) -> None:
    function = _function(find(user)[2])
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or name not in _names(code):
        raise Moved(f"{user} does not use {name}")


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
