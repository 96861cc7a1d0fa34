"""Checks of "DTensor": pieces on hidden meshes, and layouts that DTensor itself runs in the reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runners.checks import Work, check, close, equal, fail

WHOLE = "unsharded"

Mesh = list[tuple[str, int]]


def positions(mesh: Mesh, *, last_first: bool = False) -> list[dict[str, int]]:
    """Where each device is. ``last_first``: the first dimension varies fastest."""
    order = mesh[::-1] if last_first else mesh
    names = [name for name, _ in order]
    return [dict(zip(names, position, strict=True)) for position in np.ndindex(*(size for _, size in order))]


def pieces_of(
    array: np.ndarray, names: list[str], mesh: Mesh, *, last_first: bool = False, copies: bool = True
) -> list[np.ndarray]:
    """What each device holds. ``copies=False``: each piece only once."""
    sizes = dict(mesh)
    result = []
    for at in positions(mesh, last_first=last_first):
        if not copies and any(at[name] for name in sizes if name not in names):
            continue
        piece = array
        for axis, name in enumerate(names):
            if name != WHOLE:
                piece = np.split(piece, sizes[name], axis)[at[name]]
        result.append(piece)
    return result


def hidden_array(work: Work, names: list[str], mesh: Mesh) -> np.ndarray:
    """Every axis can be cut along every dimension, so a mistake has the shape of an answer."""
    unit = math.prod(size for _, size in mesh)
    shape = [unit * int(work.rng.integers(1, 3)) for _ in names]
    return np.asarray(work.rng.normal(size=shape).astype("float32"))


def compare_pieces(work: Work, names: list[str], mesh: Mesh) -> None:
    array = hidden_array(work, names, mesh)
    wrong = {
        "The devices are in another order. The last dimension of the mesh varies fastest.": pieces_of(
            array, names, mesh, last_first=True
        ),
        "The first name cuts the first axis of the array, the second name the second axis.": pieces_of(
            array, names[::-1], mesh
        ),
        "Devices along a dimension that the layout does not use hold copies. Each device needs an entry.": pieces_of(
            array, names, mesh, copies=False
        ),
        "Each device has the whole array here. Cut it along the axes that have a name.": [
            array for _ in positions(mesh)
        ],
    }
    right = pieces_of(array, names, mesh)
    got: Any = work.call("pieces", array, names, [list(pair) for pair in mesh])
    close(got, right, mistakes={message: answer for message, answer in wrong.items() if not same(answer, right)})


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


def hidden_mesh(work: Work, *names: str) -> Mesh:
    """The first and the last dimension differ in size. Otherwise, two mistakes would give the same pieces."""
    first, last = (int(size) for size in work.rng.permutation([2, 3]))
    return list(zip(names, [first, *[2] * (len(names) - 2), last], strict=True))


@check(
    "pieces",
    "An array that is cut along both dimensions of the mesh",
    xp=10,
    hints=[
        "Go through the axes of the array. Which dimension cuts this axis, and into how many parts?",
        "`at[name]` says which of these parts the device takes.",
    ],
)
def both_dimensions(work: Work) -> None:
    mesh = hidden_mesh(work, "rows", "columns")
    compare_pieces(work, ["rows", "columns"], mesh)
    compare_pieces(work, ["columns", "rows"], mesh)


@check(
    "pieces",
    "Copies along a dimension that the layout does not use",
    xp=10,
    hints=["If an axis is `WHOLE`, leave it as it is. There is still one piece for each device."],
)
def copies(work: Work) -> None:
    mesh = hidden_mesh(work, "batch", "model")
    for names in (["model", WHOLE], [WHOLE, "batch"], [WHOLE, "model"]):
        compare_pieces(work, names, mesh)


@check("pieces", "A mesh of three dimensions, and arrays with one axis and with three", xp=5)
def three_dimensions(work: Work) -> None:
    mesh = hidden_mesh(work, "stage", "batch", "model")
    compare_pieces(work, ["batch"], mesh)
    compare_pieces(work, ["model", WHOLE, "stage"], mesh)


WEIGHTS = ("gate", "up", "down", "table")
INPUTS = ("x", *WEIGHTS)

Layouts = dict[str, list[str]]


def chosen_layouts(work: Work) -> Layouts:
    """The answer, if it is a layout for each input."""
    answer: Any = work.call("layouts")
    if not isinstance(answer, dict) or set(answer) != set(INPUTS):
        fail("Return a dictionary with a layout for each of x, gate, up, down and table.")
    for layout in answer.values():
        if (
            not isinstance(layout, list | tuple)
            or len(layout) != 2
            or not all(isinstance(name, str) and name in {"batch", "model", WHOLE} for name in layout)
        ):
            fail("A layout is a list of two here. Each is `batch`, `model` or WHOLE.")
        if layout[0] == layout[1] != WHOLE:
            fail("A layout can use each name of the mesh only once.")
    return {name: list(layout) for name, layout in answer.items()}


def gelu(values: np.ndarray) -> np.ndarray:
    return 0.5 * values * (1 + np.vectorize(math.erf)(values / math.sqrt(2)))


@check(
    "choose-layouts",
    "Each device holds half of the batch and at most half of each weight",
    xp=10,
    hints=["Each weight needs a name of the mesh on one of its axes."],
)
def halves(work: Work) -> None:
    layouts = chosen_layouts(work)
    if layouts["x"] != ["batch", WHOLE]:
        fail("x has another layout than the exercise says.")
    for name in WEIGHTS:
        if layouts[name] == [WHOLE, WHOLE]:
            fail("Each device holds all of {name}.", name=name)


@check(
    "choose-layouts",
    "The forward pass needs one collective",
    xp=20,
    hints=[
        "The result of each product is the input of the next one. Which layout does it have?",
        "An activation needs whole hidden units. Cut `gate` and `up` so that each device has some of them.",
        "`table` is transposed in its product. Which of its axes is contracted?",
    ],
)
def one_collective(work: Work) -> None:
    layouts = chosen_layouts(work)
    tokens, width, hidden, words = (4 * int(work.rng.integers(2, 5)) for _ in INPUTS[1:])
    shapes = {"x": (tokens, width), "gate": (width, hidden), "up": (width, hidden)}
    shapes |= {"down": (hidden, width), "table": (words, width)}
    x, gate, up, down, table = (work.rng.normal(size=shape).astype("float32") / 4 for shape in shapes.values())
    outcome: Any = work.reference("try_layouts", layouts, x, gate, up, down, table)
    if isinstance(outcome, str):
        fail("DTensor refuses these layouts. Does a contracted axis have different names on its two sides?")
    exchanged, scores = outcome
    close(scores, gelu(x @ gate) * (x @ up) @ down @ table.T, rtol=1e-3, atol=1e-3)
    if len(exchanged) != 1:
        if not all(layouts[name][0] == WHOLE for name in ("gate", "up")):
            fail("The rows of `gate` and `up` are contracted. Cut these, and hidden units become partial sums.")
        if layouts["table"][1] != WHOLE:
            fail("The columns of `table` are contracted, so the scores need an all-reduce, too.")
        if "batch" in (name for weight in WEIGHTS for name in layouts[weight]):
            fail("`batch` already cuts the tokens, so a weight that it cuts has to be gathered.")
        if layouts["down"][0] == WHOLE:
            fail("The hidden units are cut, and `down` has all rows on each device. Cut it between rows.")
    equal(len(exchanged), 1)
