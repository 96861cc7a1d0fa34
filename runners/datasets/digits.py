"""Ten digits written by program: the stand-in for MNIST."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from runners.datasets.figures import Caster, Pose, Stroke, masters
from runners.datasets.rolls import Rolls

_HANDS = 64
"""Ways each digit is written."""
_SIDE = 28
_POSE = Pose(turn=0.4, shear=0.4, scale=(0.7, 1.1), shift=0.15)

DIGITS: tuple[tuple[Stroke, ...], ...] = (
    (
        Stroke(
            ((0, -0.7), (0.38, -0.4), (0.38, 0.4), (0, 0.7), (-0.38, 0.4), (-0.38, -0.4), (0.02, -0.7)),
        ),
    ),
    (Stroke(((-0.2, -0.45), (0.05, -0.7), (0.05, 0.7))),),
    (Stroke(((-0.38, -0.4), (-0.2, -0.66), (0.15, -0.68), (0.38, -0.4), (0.28, -0.1), (-0.42, 0.66), (0.45, 0.66))),),
    (
        Stroke(((-0.36, -0.6), (0.05, -0.7), (0.36, -0.45), (0.2, -0.12), (-0.08, -0.04))),
        Stroke(((-0.05, -0.04), (0.28, 0.1), (0.4, 0.4), (0.1, 0.7), (-0.38, 0.6))),
    ),
    (Stroke(((0.1, -0.7), (-0.42, 0.2), (0.45, 0.2))), Stroke(((0.2, -0.25), (0.2, 0.72)))),
    (Stroke(((0.38, -0.68), (-0.28, -0.66), (-0.34, -0.08), (0.1, -0.14), (0.4, 0.15), (0.25, 0.6), (-0.38, 0.6))),),
    (
        Stroke(
            (
                (0.25, -0.7),
                (-0.15, -0.4),
                (-0.36, 0.1),
                (-0.22, 0.58),
                (0.1, 0.68),
                (0.36, 0.4),
                (0.2, 0.06),
                (-0.3, 0.22),
            )
        ),
    ),
    (Stroke(((-0.42, -0.65), (0.42, -0.66), (0.1, 0), (-0.1, 0.7))),),
    (
        Stroke(((0.02, -0.04), (-0.3, -0.3), (-0.22, -0.62), (0.1, -0.7), (0.34, -0.5), (0.02, -0.04))),
        Stroke(((0.02, -0.04), (-0.36, 0.36), (-0.15, 0.68), (0.25, 0.66), (0.38, 0.35), (0.02, -0.04))),
    ),
    (
        Stroke(
            (
                (0.3, -0.3),
                (0.05, -0.06),
                (-0.28, -0.15),
                (-0.3, -0.55),
                (0.1, -0.7),
                (0.32, -0.4),
                (0.26, 0.2),
                (0, 0.7),
            )
        ),
    ),
)
"""By label, the strokes of each."""


class Pad:
    """Paper and ten hands full of masters."""

    def __init__(self, rolls: Rolls) -> None:
        self._masters = [masters(strokes, rolls, _HANDS) for strokes in DIGITS]

    def draw(self, rolls: Rolls, label: int, count: int) -> npt.NDArray[np.uint8]:
        """``count`` pictures of one digit, bright on black: (count, 28, 28)."""
        ink = Caster(rolls, count, _SIDE, _HANDS, _POSE).cast(self._masters[label]).astype(np.int16)
        bright = (rolls.between(0.75, 1.0, count) * np.float32(255)).astype(np.int16)[:, :, None]
        grain = rolls.below(24, count * _SIDE).astype(np.int16).reshape(count, _SIDE, 1)
        ink *= np.int16(4)
        np.minimum(ink, bright - grain, out=ink)
        np.maximum(ink, 0, out=ink)
        return ink.astype(np.uint8)
