"""Ten kinds of clothing, drawn by program: the stand-in for Fashion-MNIST.

Each draws ``count`` pieces of one class. Size, place, cut, brightness and cloth vary; T-shirt, pullover, coat and shirt
share one construction with overlapping measures, so that, as in the original, they are the ones hard to tell apart.
Shoes point to the left, as in the original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from runners.datasets.rolls import Floats, Rolls
from runners.datasets.silhouettes import ROWS, SIDE, Span, arch, ramp, rows_between

_HALF = np.float32(0.5)
_MIDDLE = np.float32(SIDE / 2)


Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The measures of a garment for the upper body as ranges to draw from; lengths in pixels."""

    shoulder: Range
    """Half the width at the shoulders."""
    taper: Range
    """How much narrower the waist is, on each side."""
    flare: Range
    """How much wider than the waist the hem is, on each side."""
    length: Range
    short: Range
    """Length of short sleeves as a share of the garment's length."""
    long: Range
    """The same of long ones."""
    long_share: float
    """How many have long sleeves, 0 … 1."""
    sleeve_width: Range
    sleeve_slope: Range
    """How far a sleeve moves outwards for each row downwards."""
    neck: Range
    """Half the width of the neck's opening at the top."""
    neck_depth: Range
    front: Range = (0.0, 0.0)
    """Half the width of an opening all the way down the front."""
    front_share: float = 0.0

    def __call__(self, rolls: Rolls, count: int) -> list[Span]:
        """Draw ``count`` of them: a body in two halves, a sleeve on each side."""
        length, shoulder = _roll(rolls, self.length, count), _roll(rolls, self.shoulder, count)
        top = np.clip(_MIDDLE - length * _HALF + rolls.between(-2.5, 2.5, count), 0, SIDE)
        centre = _MIDDLE + rolls.between(-2.2, 2.2, count) + rolls.between(-0.1, 0.1, count) * (ROWS - _MIDDLE)
        tone = rolls.between(0.25, 1.0, count)
        half = self._half_width(rolls, shoulder, (ROWS - top) / length) * (_HALF + _HALF * ramp(ROWS, top - 1, top + 2))
        opening = self._opening(rolls, top, count)
        lit = tone * rows_between(top, top + length)
        long = rolls.chance(self.long_share, count)
        share = _roll(rolls, self.short, count) * (1 - long) + _roll(rolls, self.long, count) * long
        thick = _roll(rolls, self.sleeve_width, count) * _HALF
        reach = shoulder - thick + _roll(rolls, self.sleeve_slope, count) * (ROWS - top)
        inner, outer = np.maximum(reach - thick, half), reach + thick
        worn = tone * rolls.between(0.8, 1.1, count) * rows_between(top + 1, top + 1 + share * length)
        return [
            Span(centre - half, centre - opening, lit),
            Span(centre + opening, centre + half, lit),
            Span(centre - outer, centre - inner, worn),
            Span(centre + inner, centre + outer, worn),
        ]

    def _half_width(self, rolls: Rolls, shoulder: Floats, share: Floats) -> Floats:
        """Half the body's width in each row; ``share`` is the row's place between top (0) and hem (1)."""
        waist = shoulder - _roll(rolls, self.taper, len(shoulder))
        fall = ramp(share, 0.0, 0.45)
        body = shoulder * (1 - fall) + waist * fall
        wider: Floats = body + _roll(rolls, self.flare, len(shoulder)) * ramp(share, 0.45, 1.0)
        return wider

    def _opening(self, rolls: Rolls, top: Floats, count: int) -> Floats:
        """Half the width of neck and front opening in each row."""
        neck = _roll(rolls, self.neck, count) * (1 - arch(ROWS, top, top + _roll(rolls, self.neck_depth, count)))
        return neck + _roll(rolls, self.front, count) * rolls.chance(self.front_share, count)


def _roll(rolls: Rolls, limits: Range, count: int) -> Floats:
    return rolls.between(limits[0], limits[1], count)


T_SHIRT = Pattern(
    shoulder=(6.0, 8.6),
    taper=(0.0, 1.8),
    flare=(-0.4, 1.2),
    length=(19.0, 25.5),
    short=(0.2, 0.46),
    long=(0.0, 0.0),
    long_share=0.0,
    sleeve_width=(3.5, 6.5),
    sleeve_slope=(0.25, 0.75),
    neck=(2.0, 4.2),
    neck_depth=(1.5, 6.0),
)
"""Short sleeves that stand off, a wide neck."""

PULLOVER = Pattern(
    shoulder=(6.2, 8.6),
    taper=(0.0, 1.8),
    flare=(-0.6, 0.6),
    length=(19.0, 25.5),
    short=(0.0, 0.0),
    long=(0.72, 0.98),
    long_share=1.0,
    sleeve_width=(3.2, 5.6),
    sleeve_slope=(0.12, 0.3),
    neck=(1.2, 3.2),
    neck_depth=(0.8, 2.8),
)
"""Long sleeves close to the body, a small round neck."""

COAT = Pattern(
    shoulder=(6.2, 8.4),
    taper=(0.2, 2.2),
    flare=(0.4, 2.6),
    length=(22.5, 27.5),
    short=(0.0, 0.0),
    long=(0.66, 0.95),
    long_share=1.0,
    sleeve_width=(3.2, 5.4),
    sleeve_slope=(0.12, 0.3),
    neck=(1.0, 3.4),
    neck_depth=(2.5, 9.0),
    front=(0.15, 0.65),
    front_share=1.0,
)
"""Longer, wider at the hem, long sleeves, open in front."""

SHIRT = Pattern(
    shoulder=(6.0, 8.4),
    taper=(0.0, 2.0),
    flare=(-0.2, 1.8),
    length=(20.5, 26.5),
    short=(0.25, 0.5),
    long=(0.58, 0.94),
    long_share=0.7,
    sleeve_width=(3.0, 5.4),
    sleeve_slope=(0.16, 0.5),
    neck=(1.4, 3.4),
    neck_depth=(2.0, 7.0),
    front=(0.08, 0.35),
    front_share=0.85,
)
"""Sleeves of any length, mostly a line of buttons."""

DRESS = Pattern(
    shoulder=(3.4, 5.6),
    taper=(-0.2, 1.6),
    flare=(0.4, 5.4),
    length=(24.0, 27.5),
    short=(0.0, 0.0),
    long=(0.1, 0.7),
    long_share=0.45,
    sleeve_width=(2.0, 3.6),
    sleeve_slope=(0.1, 0.4),
    neck=(1.0, 3.2),
    neck_depth=(1.0, 6.0),
)
"""Narrow above, wider below, as tall as the picture; some have sleeves."""


def trouser(rolls: Rolls, count: int) -> list[Span]:
    """Two legs from one waist."""
    length, fork = rolls.between(23.0, 27.5, count), rolls.between(0.22, 0.4, count)
    top = np.clip(_MIDDLE - length * _HALF + rolls.between(-1.2, 1.2, count), 0, SIDE)
    centre = _MIDDLE + rolls.between(-1.6, 1.6, count) + rolls.between(-0.07, 0.07, count) * (ROWS - _MIDDLE)
    share = (ROWS - top) / length
    waist, spread = rolls.between(3.2, 5.4, count), rolls.between(0.0, 2.8, count)
    outer = waist + spread * ramp(share, 0.1, 1.0)
    gap = rolls.between(0.5, 3.4, count) * ramp(share, fork, 1.0) + rolls.between(0.0, 0.3, count)
    lit = rolls.between(0.25, 1.0, count) * rows_between(top, top + length)
    return [Span(centre - outer, centre - gap, lit), Span(centre + gap, centre + outer, lit)]


def bag(rolls: Rolls, count: int) -> list[Span]:
    """A box with a flap and, mostly, a handle over it."""
    height, half = rolls.between(8.0, 17.0, count), rolls.between(7.5, 13.0, count)
    bottom = rolls.between(22.0, 26.5, count)
    top = bottom - height
    centre = _MIDDLE + rolls.between(-1.0, 1.0, count)
    side = half + rolls.between(-2.5, 1.5, count) * (1 - ramp(ROWS, top, bottom))
    tone = rolls.between(0.25, 1.0, count)
    flap = rows_between(top, top + height * rolls.between(0.2, 0.6, count)) * rolls.between(-0.25, 0.15, count)
    lit = tone * rows_between(top, bottom) * (1 + flap)
    reach, thick = half * rolls.between(0.35, 0.9, count), rolls.between(0.7, 1.8, count)
    peak = np.maximum(top - rolls.between(3.0, 10.0, count), rolls.between(0.5, 3.0, count))
    outer, inner = reach * arch(ROWS, peak, top), (reach - thick) * arch(ROWS, peak + thick, top)
    handle = tone * rows_between(peak, top) * rolls.chance(0.85, count)
    return [
        Span(centre - side, centre + side, lit),
        Span(centre - outer, centre - inner, handle),
        Span(centre + inner, centre + outer, handle),
    ]


def sneaker(rolls: Rolls, count: int) -> list[Span]:
    """A low shoe on a flat sole."""
    toe, heel = rolls.between(0.2, 4.5, count), rolls.between(23.5, 27.8, count)
    bottom, height = rolls.between(17.5, 24.5, count), rolls.between(6.0, 13.0, count)
    sole, top = rolls.between(0.8, 2.4, count), bottom - height
    rise = 1 - ramp(ROWS, top, bottom - sole)
    length = heel - toe
    left = toe + length * (rise * rise * rolls.between(0.5, 0.75, count) + rolls.between(0.0, 0.05, count))
    right = heel - rise * rolls.between(-0.4, 1.6, count)
    tone = rolls.between(0.25, 1.0, count)
    upper = tone * rows_between(top, bottom - sole)
    under = rolls.between(0.3, 1.0, count) * rows_between(bottom - sole, bottom)
    collar = rows_between(top, top + height * rolls.between(0.12, 0.3, count))
    mouth, tongue = rolls.between(2.0, 6.0, count), rolls.between(1.0, 2.5, count)
    wall = rolls.between(0.6, 1.6, count)
    return [
        Span(left, np.maximum(left + tongue, right - mouth * collar), upper),
        Span(right - wall * collar, right, upper),
        Span(toe + 0 * ROWS, heel + 0 * ROWS, under),
    ]


def ankle_boot(rolls: Rolls, count: int) -> list[Span]:
    """A shaft over a foot, often on a heel."""
    toe, heel = rolls.between(0.5, 5.0, count), rolls.between(22.0, 27.0, count)
    bottom, height = rolls.between(21.5, 27.0, count), rolls.between(10.5, 22.0, count)
    foot, top = rolls.between(5.0, 9.0, count), bottom - height
    shaft = rolls.between(8.0, 12.5, count)
    bend = ramp(ROWS, bottom - foot - rolls.between(1.0, 4.0, count), bottom - rolls.between(1.0, 3.5, count))
    flare = rolls.between(-1.0, 1.5, count) * (1 - ramp(ROWS, top, bottom - foot))
    left = (heel - shaft - flare) * (1 - bend) + toe * bend
    right = heel + flare - rolls.between(0.0, 1.2, count) * rows_between(bottom - foot, bottom - foot * _HALF)
    tone = rolls.between(0.25, 1.0, count)
    lift = rolls.between(0.0, 3.5, count) * rolls.chance(0.6, count)
    upper = tone * rows_between(top, bottom - lift)
    block = tone * rows_between(bottom - lift, bottom)
    return [Span(left, right, upper), Span(heel - rolls.between(3.0, 6.5, count) + 0 * ROWS, right, block)]


def sandal(rolls: Rolls, count: int) -> list[Span]:
    """A thin slanting sole, two straps and a heel of any height."""
    toe, heel = rolls.between(0.5, 3.0, count), rolls.between(24.5, 27.5, count)
    bottom, lift = rolls.between(18.0, 26.0, count), rolls.between(0.0, 9.0, count)
    thick = rolls.between(1.0, 3.0, count)
    length = heel - toe
    per_row = length / (lift + thick)
    start = toe + (bottom - ROWS - thick) * per_row
    tone = rolls.between(0.25, 1.0, count)
    sole_rows = tone * rows_between(bottom - lift - thick, bottom)
    sole = Span(np.maximum(start, toe), np.minimum(start + 2 * per_row * thick, heel), sole_rows)
    strap = rolls.between(1.2, 3.6, count)
    front = toe + length * rolls.between(0.15, 0.4, count) + rolls.between(-1.2, 1.2, count) * (bottom - ROWS - thick)
    front_rows = tone * rows_between(bottom - rolls.between(5.0, 9.0, count) - lift * _HALF, bottom - thick)
    back = heel - rolls.between(1.5, 6.0, count) + rolls.between(-0.9, 0.5, count) * (bottom - lift - ROWS)
    back_rows = tone * rows_between(bottom - lift - rolls.between(4.0, 10.0, count), bottom - lift)
    stem = rolls.between(0.8, 4.5, count)
    stem_rows = tone * rows_between(bottom - lift, bottom)
    return [
        sole,
        Span(front, front + strap, front_rows),
        Span(back, np.minimum(back + strap, np.float32(SIDE)), back_rows),
        Span(np.maximum(heel - stem, start), heel + 0 * ROWS, stem_rows),
    ]


CLASSES: tuple[Callable[[Rolls, int], list[Span]], ...] = (
    T_SHIRT,
    trouser,
    PULLOVER,
    DRESS,
    COAT,
    sandal,
    SHIRT,
    sneaker,
    bag,
    ankle_boot,
)
"""By label, in the order of the original."""
