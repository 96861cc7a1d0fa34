"""Stand-ins: made-up data with the shapes, types and counts of a real data set that is not in the cache.

There is one generator for images, one for reviews and one for tables of numbers; the catalog says which one a data set
uses. A model can learn from the data, but it has no meaning: soft patterns, numbered words, arbitrary columns. The
bytes are the same on every machine (see ``portable_rng``), and a test pins their digests.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, DataSet
from runners.datasets.decode import encode
from runners.datasets.portable_rng import PortableRandom

EDITION = 2
"""Increase it whenever a digest changes: prepared copies of another edition are not used."""

VOCABULARY = 88_584
"""Words in the index of reviews, as many as in the original."""
OPINIONS = range(101, 161)
"""Ranks of the positive (odd) and negative (even) words."""

_WORD_INDEX = "imdb_word_index.json"
_PRICES = {"boston_housing": (5.0, 50.0), "california_housing": (60_000.0, 500_000.0)}
_CLASSES_OF_A_GROUP = 5
_MODELS = 2
"""Patterns per class."""
_GRID, _CELL = 7, 6
"""A pattern has 7 x 7 random values, 6 pixels apart, with smooth transitions between them."""
_MOST_SHIFT = 6
_AT_ONCE = 500
"""Images generated at a time: few enough to stay in the processor's cache."""

Labels = npt.NDArray[np.intp]
Pixels = npt.NDArray[np.uint8]


def generate(data_set: DataSet) -> Arrays:
    """Generate the stand-in for ``data_set`` at full size. The largest take one to two seconds."""
    rolls = PortableRandom(zlib.crc32(data_set.name.encode()))
    if "x" in data_set.arrays:
        return _table(data_set, rolls)
    make = _reviews if data_set.arrays["x_train"].dtype == "object" else _images(data_set, rolls)
    arrays: Arrays = {}
    for part in ("train", "test"):
        labels = _labels(data_set, rolls, data_set.arrays[f"x_{part}"].shape[0])
        arrays[f"x_{part}"] = make(rolls, labels)
        for name, shown in (("", labels), ("_coarse", labels // _CLASSES_OF_A_GROUP)):
            if spec := data_set.arrays.get(f"y_{part}{name}"):
                arrays[f"y_{part}{name}"] = shown.astype(spec.dtype).reshape(spec.shape)
    return arrays


def write_file(data_set: DataSet, file: str, path: Path, arrays: Callable[[], Arrays]) -> None:
    """Write the stand-in's ``file`` to ``path`` in the format of the real one; ``arrays`` is called only if needed.

    Raises:
        OSError: no room, or no right to write.
    """
    if file == _WORD_INDEX:
        path.write_text(json.dumps(word_index()))
    else:
        encode(data_set, file, arrays(), path)


def word_index() -> dict[str, int]:
    """Each word's rank, counted from 1, as ``imdb.get_word_index()`` returns it."""
    return {_word(rank): rank for rank in range(1, VOCABULARY + 1)}


def _word(rank: int) -> str:
    return f"{'good' if rank % 2 else 'bad'}{rank}" if rank in OPINIONS else f"word{rank}"


def _labels(data_set: DataSet, rolls: PortableRandom, count: int) -> Labels:
    """Labels in which every class is equally frequent, shuffled."""
    return (np.arange(count) % len(data_set.classes))[rolls.order(count)]


def _images(data_set: DataSet, rolls: PortableRandom) -> Callable[[PortableRandom, Labels], Pixels]:
    """Return a generator of images: a pattern of the class, shifted, blended with another, dimmed, with noise."""
    _, height, width, *colours = data_set.arrays["x_train"].shape
    planes, patterns = (colours or [1])[0], len(data_set.classes) * _MODELS
    values = rolls.below(256, patterns * planes * _GRID * _GRID).reshape(patterns, planes, _GRID, _GRID)
    large = values.astype(np.int32).repeat(_CELL, axis=2).repeat(_CELL, axis=3)
    for axis in (2, 3):
        large = np.add.reduce([np.roll(large, step, axis) for step in range(_CELL)]) // _CELL
    views = np.lib.stride_tricks.sliding_window_view(large.astype(np.uint16), (height, width), axis=(2, 3))

    def some(chosen: Labels) -> npt.NDArray[np.uint16]:
        down, right = rolls.below(_MOST_SHIFT, len(chosen)), rolls.below(_MOST_SHIFT, len(chosen))
        return views[chosen, :, down, right]

    def make(rolls: PortableRandom, labels: Labels) -> Pixels:
        images = np.empty((len(labels), height, width, planes), np.uint8)
        for start in range(0, len(labels), _AT_ONCE):
            chosen = labels[start : start + _AT_ONCE] * _MODELS
            count = len(chosen)
            share, light = (
                (least + rolls.below(256 - least, count)).astype(np.uint16).reshape(count, 1, 1, 1)
                for least in (128, 96)
            )
            image = some(chosen + rolls.below(_MODELS, count)) * share
            image += some(rolls.below(patterns, count)) * (256 - share)
            image >>= 8
            image *= light
            image >>= 8
            image += rolls.bytes(image.size).reshape(image.shape) >> 3
            np.minimum(image, 255, out=image)
            images[start : start + count] = image.transpose(0, 2, 3, 1)
        return images if colours else images[..., 0]

    return make


def _reviews(rolls: PortableRandom, labels: Labels) -> npt.NDArray[np.object_]:
    """Lists of ranks, counted from 1. Each leans toward its label, some of them only slightly."""
    count = len(labels)
    share = rolls.unit(count)
    lengths = 40 + (share * share * share * np.float32(380)).astype(np.int64)
    total = int(lengths.sum())
    is_opinion = np.repeat(rolls.between(0.04, 0.16, count)[:, 0], lengths) > rolls.unit(total)
    leaning = np.repeat(rolls.between(0.6, 1.0, count)[:, 0], lengths) > rolls.unit(total)
    praises = (np.repeat(labels, lengths) == 1) == leaning
    opinions = OPINIONS.start + 2 * rolls.below(len(OPINIONS) // 2, total) + ~praises
    ranks = np.where(is_opinion, opinions, _common_words(rolls, total))
    ends = np.cumsum(lengths)
    reviews = np.empty(count, object)
    reviews[:] = [ranks[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)]
    return reviews


def _common_words(rolls: PortableRandom, count: int) -> npt.NDArray[np.int64]:
    """Ranks; half of them are among the first 100. Integer arithmetic only, so that they are the same everywhere."""
    ranks = np.arange(1, VOCABULARY + 1)
    edges = np.cumsum((1 << 50) // ((ranks + 2) * (ranks + 2000)))
    return np.searchsorted(edges, rolls.below(int(edges[-1]), count), side="right") + 1


def _table(data_set: DataSet, rolls: PortableRandom) -> Arrays:
    """Columns of different scales, and a price that depends on them nonlinearly, with noise."""
    (rows, columns), (low, high) = data_set.arrays["x"].shape, _PRICES[data_set.name]
    shares = [rolls.unit(rows).astype(np.float64) for _ in range(columns)]
    price = 0.25 + 0.5 * shares[0] * shares[0] + 0.2 * (rolls.unit(rows) + rolls.unit(rows) - 1)
    for number, share in enumerate(shares):
        price += (0.4, -0.3, 0.2, 0.0)[number % 4] * (share - 0.5)
    x = np.stack([share * 10.0 ** (number % 5 - 1) for number, share in enumerate(shares)], axis=1)
    y = low + (high - low) * np.clip(price, 0, 1)
    return {"x": x.astype(data_set.arrays["x"].dtype), "y": y.astype(data_set.arrays["y"].dtype)}
