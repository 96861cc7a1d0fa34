"""Small coloured scenes drawn by program: the stand-ins for CIFAR-10 and CIFAR-100.

A figure in one or two colours stands before a ground that fades from one colour to another, under a grain. For CIFAR-10
each class has a figure of its own and colours it prefers. For CIFAR-100 the twenty groups have figures, made up from
the group's number, and the five classes of a group differ in colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from runners.datasets.figures import Box, Caster, Disc, Masks, Part, Pose, Stroke, masters
from runners.datasets.rolls import Rolls

_SIDE = 32
_MODELS = 48
"""Masters of each figure."""
_POSE = Pose(turn=0.3, shear=0.15, scale=(0.75, 1.25), shift=0.25)
_PIECES = 512
_GROUPS = 20
_BEHIND = ((0, 1), (3, 0), (5, 4), (7, 6))
"""What makes the grounds of a group in CIFAR-100's stand-in."""

Colour = tuple[int, int, int]
Values = npt.NDArray[np.int16]

_SKY, _DUSK, _SEA, _ROAD, _WALL = (150, 190, 235), (225, 185, 150), (60, 110, 165), (120, 120, 125), (175, 160, 140)
_GRASS, _WOOD, _SAND, _SNOW = (95, 140, 70), (70, 85, 50), (200, 180, 130), (225, 230, 235)
_WHITE, _GREY, _BLACK, _RED, _BLUE = (235, 235, 230), (140, 145, 150), (40, 38, 40), (190, 45, 40), (50, 80, 170)
_YELLOW, _GREEN, _BROWN, _TAN, _RUST = (215, 185, 60), (90, 150, 50), (115, 75, 45), (180, 140, 95), (150, 85, 50)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the images of one class are made of."""

    body: tuple[Part, ...]
    detail: tuple[Part, ...]
    tones: tuple[Colour, ...]
    """Colours of the body, one drawn for each image."""
    grounds: tuple[tuple[Colour, Colour], ...]
    """Colours at the top and at the bottom."""
    trim: Colour = _BLACK
    """Colour of the detail."""


_WHEELS = (Disc(-0.38, 0.36, 0.16, 0.16), Disc(0.4, 0.36, 0.16, 0.16))
_LEGS = tuple(
    Stroke(((x, 0.1), (x + lean, 0.72)), 0.11)
    for x, lean in ((-0.42, -0.06), (-0.24, 0.06), (0.24, -0.04), (0.4, 0.08))
)

TEN: tuple[Scene, ...] = (
    Scene(
        body=(Disc(0, 0, 0.8, 0.15), Stroke(((0.12, 0), (-0.3, 0.5)), 0.2), Stroke(((0.1, 0), (-0.25, -0.4)), 0.16)),
        detail=(Stroke(((-0.62, 0), (-0.8, -0.34)), 0.18),),
        tones=(_WHITE, _GREY, _WHITE, _BLUE),
        grounds=((_SKY, _SNOW), (_SKY, _SKY), (_SEA, _SKY), (_DUSK, _ROAD)),
        trim=_RED,
    ),
    Scene(
        body=(Box(0, 0.14, 0.7, 0.2), Box(-0.04, -0.16, 0.4, 0.18)),
        detail=_WHEELS,
        tones=(_RED, _BLUE, _YELLOW, _GREY, _WHITE, _BLACK),
        grounds=((_SKY, _ROAD), (_WALL, _ROAD), (_GRASS, _ROAD)),
    ),
    Scene(
        body=(Disc(0, 0.1, 0.42, 0.26), Disc(0.4, -0.22, 0.18, 0.18), Stroke(((-0.3, 0.15), (-0.75, 0.35)), 0.18)),
        detail=(Stroke(((0.55, -0.22), (0.74, -0.16)), 0.1), Stroke(((0.02, 0.35), (0.04, 0.68)), 0.07)),
        tones=(_BROWN, _GREY, _BLUE, _YELLOW, _TAN),
        grounds=((_SKY, _SKY), (_WOOD, _GRASS), (_SNOW, _WOOD), (_GRASS, _GRASS)),
        trim=_YELLOW,
    ),
    Scene(
        body=(
            Disc(0, 0.1, 0.46, 0.42),
            Stroke(((-0.3, -0.2), (-0.42, -0.58)), 0.24),
            Stroke(((0.3, -0.2), (0.42, -0.58)), 0.24),
        ),
        detail=(Disc(-0.18, 0.02, 0.09, 0.09), Disc(0.18, 0.02, 0.09, 0.09), Disc(0, 0.24, 0.08, 0.05)),
        tones=(_GREY, _TAN, _BLACK, _RUST, _WHITE),
        grounds=((_WALL, _WALL), (_WALL, _SAND), (_GRASS, _GRASS), (_ROAD, _WALL)),
        trim=_YELLOW,
    ),
    Scene(
        body=(Disc(0, 0, 0.48, 0.2), *_LEGS, Stroke(((0.4, -0.05), (0.55, -0.4)), 0.16), Disc(0.6, -0.44, 0.15, 0.1)),
        detail=(Stroke(((0.52, -0.5), (0.36, -0.85)), 0.07), Stroke(((0.6, -0.5), (0.78, -0.85)), 0.07)),
        tones=(_BROWN, _RUST, _TAN),
        grounds=((_WOOD, _GRASS), (_GRASS, _GRASS), (_SNOW, _SNOW), (_WOOD, _SAND)),
        trim=_WALL,
    ),
    Scene(
        body=(
            Disc(0, -0.02, 0.36, 0.4),
            Disc(0, 0.36, 0.22, 0.24),
            Disc(-0.44, 0.06, 0.14, 0.36),
            Disc(0.44, 0.06, 0.14, 0.36),
        ),
        detail=(Disc(-0.16, -0.1, 0.07, 0.07), Disc(0.16, -0.1, 0.07, 0.07), Disc(0, 0.34, 0.13, 0.09)),
        tones=(_BROWN, _TAN, _BLACK, _WHITE, _RUST),
        grounds=((_WALL, _WALL), (_GRASS, _GRASS), (_SAND, _SAND), (_WALL, _ROAD)),
    ),
    Scene(
        body=(Disc(0, 0.2, 0.62, 0.32), Disc(-0.28, -0.16, 0.17, 0.17), Disc(0.28, -0.16, 0.17, 0.17)),
        detail=(
            Disc(-0.28, -0.16, 0.07, 0.07),
            Disc(0.28, -0.16, 0.07, 0.07),
            Stroke(((-0.3, 0.24), (0.3, 0.24)), 0.06),
        ),
        tones=(_GREEN, _GREEN, _YELLOW, _BROWN),
        grounds=((_WOOD, _WOOD), (_SAND, _SAND), (_GRASS, _WOOD), (_SNOW, _WALL)),
    ),
    Scene(
        body=(
            Disc(-0.05, 0, 0.5, 0.24),
            *_LEGS,
            Stroke(((0.35, -0.05), (0.6, -0.5)), 0.24),
            Disc(0.7, -0.5, 0.2, 0.12),
        ),
        detail=(Stroke(((0.3, -0.25), (0.52, -0.62)), 0.1), Stroke(((-0.52, -0.05), (-0.7, 0.35)), 0.12)),
        tones=(_BROWN, _RUST, _BLACK, _WHITE),
        grounds=((_SKY, _GRASS), (_GRASS, _SAND), (_WOOD, _GRASS), (_SKY, _SAND)),
    ),
    Scene(
        body=(Box(0, 0.28, 0.7, 0.14), Box(0.02, 0.42, 0.55, 0.1), Box(0.14, 0, 0.24, 0.18)),
        detail=(Stroke(((-0.2, 0.15), (-0.2, -0.65)), 0.09), Box(0.2, -0.3, 0.08, 0.14)),
        tones=(_WHITE, _GREY, _RED, _BLACK, _BLUE),
        grounds=((_SKY, _SEA), (_SEA, _SEA), (_DUSK, _SEA)),
        trim=_RED,
    ),
    Scene(
        body=(Box(-0.16, -0.14, 0.5, 0.4), Box(0.5, 0.06, 0.2, 0.22)),
        detail=(*_WHEELS, Box(0.54, -0.04, 0.1, 0.08)),
        tones=(_WHITE, _RED, _BLUE, _YELLOW, _GREY),
        grounds=((_SKY, _ROAD), (_WALL, _ROAD), (_SKY, _SAND), (_GRASS, _ROAD)),
    ),
)
"""By label, in the order of the original."""

GROUP_OF: tuple[int, ...] = (
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7),
    *(6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10),
    *(16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16),
    *(12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13),
)
"""CIFAR-100's coarse label for each of its fine ones."""


def hundred() -> tuple[Scene, ...]:
    """CIFAR-100's classes by fine label: the group's figure and grounds, a colour of the class's own."""
    figures = [_figure(Rolls(1_000 + group)) for group in range(_GROUPS)]
    grounds = (_SKY, _DUSK, _SEA, _ROAD, _WALL, _GRASS, _WOOD, _SAND, _SNOW)
    own = (_RED, _BLUE, _YELLOW, _GREEN, _WHITE), (_BLACK, _TAN, _GREY, _RUST, _GREEN)
    scenes, met = [], [0] * _GROUPS
    for group in GROUP_OF:
        body, detail = figures[group]
        tone = own[group % 2][met[group]]
        behind = tuple(
            (grounds[(group + a) % len(grounds)], grounds[(group * 4 + b) % len(grounds)]) for a, b in _BEHIND
        )
        scenes.append(Scene(body, detail, (tone, tone, _GREY), behind, trim=(_BLACK, _WHITE)[group // 2 % 2]))
        met[group] += 1
    return tuple(scenes)


def _figure(rolls: Rolls) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """A body of three parts and a detail of one."""

    def at(low: float, high: float) -> float:
        return float(rolls.between(low, high, 1)[0, 0])

    body: list[Part] = [
        (Disc, Box)[int(rolls.below(2, 1)[0])](at(-0.2, 0.2), at(-0.2, 0.2), at(0.2, 0.6), at(0.2, 0.6))
    ]
    for _ in range(2):
        body.append(Stroke(((at(-0.3, 0.3), at(-0.3, 0.3)), (at(-0.8, 0.8), at(-0.8, 0.8))), at(0.15, 0.35)))
    return tuple(body), (Disc(at(-0.3, 0.3), at(-0.3, 0.3), at(0.1, 0.2), at(0.1, 0.2)),)


class Studio:
    """Figures, colours and grain for one stand-in."""

    def __init__(self, rolls: Rolls, scenes: Sequence[Scene]) -> None:
        self._scenes = scenes
        drawn: dict[tuple[Part, ...], Masks] = {}
        for scene in scenes:
            for parts in (scene.body, scene.detail):
                if parts not in drawn:
                    drawn[parts] = masters(parts, rolls, _MODELS)
        self._masters = drawn
        fine = rolls.below(41, _PIECES * _SIDE * _SIDE).reshape(_PIECES, _SIDE, _SIDE)
        coarse = rolls.below(41, _PIECES * (_SIDE // 4) ** 2).reshape(_PIECES, _SIDE // 4, _SIDE // 4)
        self._grain = (fine + coarse.repeat(4, axis=1).repeat(4, axis=2) - 40).astype(np.int16)

    def draw(self, rolls: Rolls, label: int, count: int) -> npt.NDArray[np.uint8]:
        """``count`` pictures of one class: (count, 32, 32, 3)."""
        scene = self._scenes[label]
        caster = Caster(rolls, count, _SIDE, _MODELS, _POSE)
        image = _fade(rolls, scene.grounds, count)
        for parts, colours in ((scene.body, scene.tones), (scene.detail, (scene.trim,))):
            _lay(image, caster.cast(self._masters[parts]), _colours(rolls, colours, count))
        image += self._grain[rolls.below(_PIECES, count)][:, None]
        image += (rolls.below(51, count) - 25).astype(np.int16).reshape(count, 1, 1, 1)
        np.clip(image, 0, 255, out=image)
        return image.astype(np.uint8).transpose(0, 2, 3, 1)


def _colours(rolls: Rolls, colours: Sequence[Colour], count: int) -> Values:
    """One of ``colours`` for each image, and not exactly that: (count, 3, 1, 1)."""
    chosen = np.array(colours, np.int16)[rolls.below(len(colours), count)]
    off = (rolls.below(61, count * 3) - 30).astype(np.int16).reshape(count, 3)
    return (chosen + off)[:, :, None, None]


def _fade(rolls: Rolls, grounds: Sequence[tuple[Colour, Colour]], count: int) -> Values:
    """From one colour at the top to another at the bottom: (count, 3, 32, 32), a plane for each colour."""
    top, bottom = (np.array([pair[end] for pair in grounds], np.int16) for end in (0, 1))
    chosen = rolls.below(len(grounds), count)
    off = (rolls.below(61, count * 3) - 30).astype(np.int16).reshape(count, 3)
    first, last = (top[chosen] + off)[:, :, None], (bottom[chosen] + off)[:, :, None]
    rows = first + ((last - first) * np.arange(_SIDE, dtype=np.int16) >> 5)
    return np.repeat(rows[:, :, :, None], _SIDE, axis=3)


def _lay(image: Values, mask: Masks, colour: Values) -> None:
    """Lay a colour over an image where the mask is."""
    over = colour - image
    over *= mask.astype(np.int16)[:, None]
    over >>= 6
    image += over
