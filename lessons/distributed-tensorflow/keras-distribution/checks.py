"""Checks of "One API over many devices": hidden models and meshes, laid out by Keras itself in the reference."""

from __future__ import annotations

import math
import re
from typing import Any

from runners.checks import Work, check, equal, fail

Rules = dict[str, list[str | None]]
Variables = list[tuple[str, tuple[int, ...]]]
Mesh = dict[str, int]


def axes_of(path: str, rules: Rules, *, match: Any = re.fullmatch, own_key: bool = True) -> list[str | None]:
    """The layout that ``LayoutMap`` gives a path. ``own_key=False``: the first pattern that matches wins."""
    if own_key and path in rules:
        return rules[path]
    return next((axes for pattern, axes in rules.items() if match(pattern, path)), [])


def numbers_held(
    variables: Variables,
    rules: Rules,
    mesh: Mesh,
    *,
    copies: bool = True,
    every_name: bool = True,
    matched_only: bool = False,
    **lookup: Any,
) -> int:
    """How many numbers each device holds.

    ``copies=False`` divides by all devices, ``every_name=False`` by the first name of a layout only, and
    ``matched_only`` leaves out what no pattern matches.
    """
    total = 0
    for path, shape in variables:
        names = [name for name in axes_of(path, rules, **lookup) if name]
        if matched_only and not axes_of(path, rules, **lookup):
            continue
        sizes = [mesh[name] for name in (names if every_name else names[:1])]
        parts = math.prod(sizes) if copies or not names else math.prod(mesh.values())
        total += math.prod(shape) // parts
    return total


MISTAKES: dict[str, dict[str, Any]] = {
    "Only the layout's own names divide a weight. Along the other dimensions of the mesh, devices hold copies.": {
        "copies": False
    },
    "A layout can have several names. Each of them divides the weight.": {"every_name": False},
    "A weight that no pattern matches is whole on each device. It has to be counted, too.": {"matched_only": True},
    "The pattern has to match the whole path, not only a part of it.": {"match": re.search},
    "The pattern has to match the whole path, and not only its beginning.": {"match": re.match},
    "A key that is the path itself comes first, before every pattern.": {"own_key": False},
}


def compare(work: Work, variables: Variables, rules: Rules, mesh: Mesh) -> None:
    right = numbers_held(variables, rules, mesh)
    wrong = {message: numbers_held(variables, rules, mesh, **change) for message, change in MISTAKES.items()}
    equal(work.call("held", [[path, list(shape)] for path, shape in variables], rules, mesh), right, mistakes=wrong)


def hidden_mesh(work: Work) -> Mesh:
    batch, model = (int(size) for size in work.rng.choice([2, 3, 4, 5], size=2, replace=False))
    return {"batch": batch, "model": model}


def hidden_variables(work: Work, mesh: Mesh, *paths: str) -> Variables:
    """Each path with a shape whose every axis can be divided by the whole mesh.

    They are from a wide range: what two mistakes lead to differs by sums of products of them.
    """
    unit = math.prod(mesh.values())
    return [(path, tuple(unit * int(n) for n in work.rng.integers(100, 1000, size=2))) for path in paths]


@check(
    "held",
    "Weights cut along one dimension of the mesh, along both, and not at all",
    xp=10,
    hints=[
        "Into how many pieces does a layout cut a weight? Multiply the sizes of the dimensions that it names.",
        "Which layout does a weight have whose path no pattern matches?",
    ],
)
def divides(work: Work) -> None:
    mesh = hidden_mesh(work)
    variables = hidden_variables(work, mesh, "net/first/kernel", "net/second/kernel", "net/third/kernel", "net/table")
    rules: Rules = {
        ".*first/kernel": [None, "model"],
        ".*second/.*": ["model", "batch"],
        ".*third/kernel": ["batch", None],
    }
    compare(work, variables, rules, mesh)


@check(
    "held",
    "Patterns that match only a part of a path",
    xp=10,
    hints=["`re.search` finds a pattern anywhere, `re.match` at the beginning. `re.fullmatch` needs all of the path."],
)
def whole_path(work: Work) -> None:
    mesh = hidden_mesh(work)
    name = str(work.rng.choice(["net", "model", "decoder"]))
    variables = hidden_variables(work, mesh, f"{name}/up/kernel", f"{name}/down/kernel", f"{name}/out/kernel")
    rules: Rules = {"up/kernel": [None, "model"], f"{name}/down": ["model", None], ".*out/kernel": [None, "batch"]}
    compare(work, variables, rules, mesh)


@check("held", "A key that is exactly the path, beside a pattern", xp=5)
def exact_key(work: Work) -> None:
    mesh = hidden_mesh(work)
    variables = hidden_variables(work, mesh, "net/up/kernel", "net/down/kernel")
    compare(work, variables, {".*kernel": [None, "model"], "net/up/kernel": ["batch", None]}, mesh)


Layouts = dict[str, tuple[list[int], list[str | None]]]
HEADS = [None, "model", None]


def hidden_layouts(work: Work) -> Layouts:
    """Shape and axes of each weight of a hidden decoder, as Keras finds them with the submission's patterns."""
    rules: Any = work.call("rules")
    if not isinstance(rules, dict) or not rules:
        fail("Return a dictionary of patterns and axes.")
    for pattern, axes in rules.items():
        if not isinstance(pattern, str) or not isinstance(axes, list | tuple):
            fail("Each key is a pattern, and each value a tuple with a name or None for each axis.")
        if not all(name is None or isinstance(name, str) for name in axes):
            fail("Each key is a pattern, and each value a tuple with a name or None for each axis.")
    blocks = int(work.rng.integers(11, 14))
    heads, size = (4 * int(n) for n in work.rng.integers(1, 3, size=2))
    width = heads * size
    found: Any = work.reference(
        "try_rules", {pattern: list(axes) for pattern, axes in rules.items()}, blocks, width, heads
    )
    if isinstance(found, str):
        if "multiple layout" in found:
            fail("Two of your patterns match the same path. Each path may match only one.")
        fail("Keras refuses the patterns: {why}", why=found.removeprefix("refused: ")[:160])
    return {path: (shape, axes) for path, shape, axes in found}


def is_matrix(path: str) -> bool:
    return path.endswith(("/kernel", "/embeddings"))


@check(
    "rules",
    "Each path matches at most one pattern, and each layout fits its weight",
    xp=10,
    hints=["`try_rules` lists path, shape and axes. A layout has one entry for each number of the shape."],
)
def fits(work: Work) -> None:
    for path, (shape, axes) in hidden_layouts(work).items():
        if len(shape) != len(axes):
            fail(
                "The layout of {path} has {axes} axes, and its shape {shape}.",
                path=path,
                axes=len(axes),
                shape=len(shape),
            )
        if any(name == "model" and size % 4 for size, name in zip(shape, axes, strict=True)):
            fail("{path} has an axis that cannot be cut into four.", path=path)


@check(
    "rules",
    "Each device holds a quarter of each kernel and of the table, with more than ten blocks",
    xp=10,
    hints=["A pattern has to match the whole path. Does yours also match `block_10`?"],
)
def quarters(work: Work) -> None:
    layouts = hidden_layouts(work)
    for path, (_, axes) in layouts.items():
        if "batch" in axes:
            fail(
                "`batch` cuts {path}. Leave it to the examples, or the weight has to be gathered in each step.",
                path=path,
            )
        if is_matrix(path) and axes.count("model") != 1:
            fail("Each device holds all of {path}.", path=path)


@check(
    "rules",
    "One all-reduce for each attention and each MLP",
    xp=20,
    hints=[
        "Cut the first product of a pair between columns, the second between rows. Heads are columns.",
        "What is added after an all-reduce has to be whole on each device.",
    ],
)
def one_each(work: Work) -> None:
    for path, (_, axes) in hidden_layouts(work).items():
        if path.endswith(("query/kernel", "key/kernel", "value/kernel")) and axes != HEADS:
            fail("Cut {path} between heads, so that each device has whole heads.", path=path)
        if path.endswith("attention_output/kernel") and axes != ["model", None, None]:
            fail("{path} contracts the heads. Cut it between them, as its input is cut.", path=path)
        if path.endswith("up/kernel") and axes != [None, "model"]:
            fail("The rows of {path} are contracted. Cut these, and hidden units become partial sums.", path=path)
        if path.endswith("down/kernel") and axes != ["model", None]:
            fail("The hidden units are cut, so cut {path} between rows.", path=path)
        if path.endswith("embeddings") and axes != ["model", None]:
            fail("The device that has a word needs all of its row. Cut the table between words.")
        if path.endswith(("down/bias", "attention_output/bias", "gamma", "beta")) and "model" in axes:
            fail("{path} meets what is whole on each device. Leave it whole, too.", path=path)
        if path.endswith(("query/bias", "key/bias", "value/bias")) and axes not in ([None, None], ["model", None]):
            fail("{path} is added to whole heads. Cut it between heads, or leave it whole.", path=path)
