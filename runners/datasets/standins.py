"""Stand-ins: images drawn by program, of the same shapes and types as a real data set that is not there.

A stand-in is fixed for ever by its seed and its drawing functions: every node draws the same bytes. A test pins
their digest; a change of a drawing is a change of a lesson's numbers and has to be meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from runners.datasets import garments
from runners.datasets.catalog import Arrays, DataSet
from runners.datasets.rolls import Rolls
from runners.datasets.silhouettes import SIDE, Cloth, Span, paint

_AT_ONCE = 500
"""Images drawn in one go: few enough to stay in the processor's cache."""

Draw = Callable[[Rolls, int], list[Span]]
Labels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A stand-in for a set of 28 × 28 grey images: one drawing function a class, and a seed."""

    seed: int
    classes: tuple[Draw, ...]
    edition: int = 1
    """Counts the drawings' versions; prepared copies of another edition are not used."""

    def arrays(self, train: int, test: int) -> Arrays:
        """Draw ``train`` and ``test`` images, every class equally often, shuffled: uint8, as Keras returns them."""
        rolls = Rolls(self.seed)
        cloth = Cloth(rolls)
        x_train, y_train = self._part(rolls, cloth, train)
        x_test, y_test = self._part(rolls, cloth, test)
        return {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}

    def _part(self, rolls: Rolls, cloth: Cloth, count: int) -> tuple[npt.NDArray[np.uint8], Labels]:
        labels = (np.arange(count) % len(self.classes)).astype(np.uint8)[rolls.order(count)]
        images = np.empty((count, SIDE, SIDE), np.uint8)
        for label, draw in enumerate(self.classes):
            places = np.flatnonzero(labels == label)
            for start in range(0, len(places), _AT_ONCE):
                some = places[start : start + _AT_ONCE]
                images[some] = paint(draw(rolls, len(some)), cloth.cut(rolls, len(some)))
        return images, labels


STAND_INS: Mapping[str, Drawn] = MappingProxyType({"fashion_mnist": Drawn(seed=20170825, classes=garments.CLASSES)})
"""By the name of the data set each stands in for."""


def draw(data_set: DataSet) -> Arrays:
    """Draw the stand-in for ``data_set`` at its full size: about half a second for 70,000 images."""
    return STAND_INS[data_set.name].arrays(
        data_set.arrays["x_train"].shape[0],
        data_set.arrays["x_test"].shape[0],
    )
