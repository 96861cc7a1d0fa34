"""Stand-ins: data made by program, of the same shapes and types as a real data set that is not there.

A stand-in is fixed for ever by its seed and its drawing functions: every node draws the same bytes. A test pins
their digest; a change of a drawing is a change of a lesson's numbers and has to be meant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from runners.datasets import digits, garments, houses, reviews, scenes
from runners.datasets.catalog import Arrays, DataSet
from runners.datasets.decode import encode
from runners.datasets.rolls import Rolls
from runners.datasets.silhouettes import Cloth, Span, paint

_AT_ONCE = 500
"""Images drawn in one go: few enough to stay in the processor's cache."""

Draw = Callable[[Rolls, int], list[Span]]
Labels = npt.NDArray[np.uint8]


class Artist(Protocol):
    """Draws one class of a set of images after another."""

    def draw(self, rolls: Rolls, label: int, count: int) -> npt.NDArray[np.uint8]:
        """``count`` images of the class ``label``."""


class Wardrobe:
    """Draws garments: a drawing function a class, and cloth for all."""

    def __init__(self, rolls: Rolls, classes: tuple[Draw, ...]) -> None:
        self._cloth = Cloth(rolls)
        self._classes = classes

    def draw(self, rolls: Rolls, label: int, count: int) -> npt.NDArray[np.uint8]:
        """(count, 28, 28)."""
        return paint(self._classes[label](rolls, count), self._cloth.cut(rolls, count))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A stand-in for a set of labelled images."""

    seed: int
    classes: int
    artist: Callable[[Rolls], Artist]
    groups: tuple[int, ...] = ()
    """A coarse label for each class, where the data set has such."""
    edition: int = 1
    """Counts the drawings' versions; prepared copies of another edition are not used."""

    def draw(self, data_set: DataSet) -> Arrays:
        """Draw as many as the data set has, with labels of its shape."""
        specs = data_set.arrays
        arrays = self.arrays(specs["x_train"].shape[0], specs["x_test"].shape[0])
        return {name: arrays[name].reshape(spec.shape) for name, spec in specs.items()}

    def arrays(self, train: int, test: int) -> Arrays:
        """Draw ``train`` and ``test`` images, every class equally often, shuffled: uint8, as Keras returns them."""
        rolls = Rolls(self.seed)
        artist = self.artist(rolls)
        arrays: Arrays = {}
        for part, count in (("train", train), ("test", test)):
            arrays[f"x_{part}"], labels = self._part(rolls, artist, count)
            arrays[f"y_{part}"] = labels
            if self.groups:
                arrays[f"y_{part}_coarse"] = np.array(self.groups, np.uint8)[labels]
        return arrays

    def _part(self, rolls: Rolls, artist: Artist, count: int) -> tuple[npt.NDArray[np.uint8], Labels]:
        labels = (np.arange(count) % self.classes).astype(np.uint8)[rolls.order(count)]
        images: npt.NDArray[np.uint8] | None = None
        for label in range(self.classes):
            places = np.flatnonzero(labels == label)
            for start in range(0, len(places), _AT_ONCE):
                some = places[start : start + _AT_ONCE]
                drawn = artist.draw(rolls, label, len(some))
                if images is None:
                    images = np.empty((count, *drawn.shape[1:]), np.uint8)
                images[some] = drawn
        assert images is not None
        return images, labels


@dataclass(frozen=True, slots=True)
class Made:
    """A stand-in made by one function, and files that hold no array."""

    draw: Callable[[DataSet], Arrays]
    others: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """What is in a file, as JSON."""
    edition: int = 1


STAND_INS: Mapping[str, Drawn | Made] = MappingProxyType(
    {
        "fashion_mnist": Drawn(20170825, 10, lambda rolls: Wardrobe(rolls, garments.CLASSES)),
        "mnist": Drawn(19981101, 10, digits.Pad),
        "cifar10": Drawn(20090408, 10, lambda rolls: scenes.Studio(rolls, scenes.TEN)),
        "cifar100": Drawn(20090409, 100, lambda rolls: scenes.Studio(rolls, scenes.hundred()), scenes.GROUP_OF),
        "imdb": Made(reviews.write, {"imdb_word_index.json": reviews.word_index}),
        "boston_housing": Made(houses.boston),
        "california_housing": Made(houses.california),
    }
)
"""By the name of the data set each stands in for."""


def draw(data_set: DataSet) -> Arrays:
    """Draw the stand-in for ``data_set`` at its full size: one to four seconds for the largest."""
    return STAND_INS[data_set.name].draw(data_set)


def write_file(data_set: DataSet, file: str, path: Path, arrays: Callable[[], Arrays]) -> None:
    """Make the stand-in's ``file``, in the format of the real one, at ``path``; ``arrays`` is called if it is needed.

    Raises:
        OSError: no room, or no right to write.
    """
    stand_in = STAND_INS[data_set.name]
    other = stand_in.others.get(file) if isinstance(stand_in, Made) else None
    if other is None:
        encode(data_set, file, arrays(), path)
    else:
        path.write_text(json.dumps(other()))
