"""Makes ``keras.datasets.<name>.load_data()`` work in the sandbox without a network.

It reads the node's cache, where arrays are ready, or generates the stand-in. IMDB and the house prices are left to
Keras, which gets their files (see ``keras_get_file``).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from runners.datasets.cache import Cache
from runners.datasets.catalog import Arrays, Catalog, DataSet, read_catalog
from runners.datasets.prepared import map_prepared
from runners.datasets.standins import generate
from runners.guest.tf_patches import keras_get_file
from runners.guest.tf_patches.registry import Subject

Pair = tuple[Any, Any]
LoadData = Callable[..., tuple[Pair, Pair]]

DATA_SETS = ("cifar10", "cifar100", "fashion_mnist", "mnist")
"""The data sets that the catalog does not leave to Keras."""
_HOMES = ("keras.src.datasets", "tf_keras.src.datasets")
"""The modules in which both versions of Keras define ``load_data``; other modules only re-export it."""
_LABEL_MODES = ("fine", "coarse")

STAND_IN_LINE = (
    "Stand-in data: {title} is not in this node's cache, so these are {stand_in} of the same size and type. "
    "The operator can get the real one with: lockstep datasets fetch {name}"
)

subject = Subject(
    __name__,
    when="every process",
    because="a session has no network",
    since="Keras 3.15 and TF-Keras 2.21",
    test="tests/unit/runners/guest/tf_patches/test_keras_datasets.py"
    "::test_keras_3_and_a_later_import_of_tf_keras_get_the_stand_in_and_say_so",
)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of data sets."""

    cache: Cache
    catalog: Catalog


def install(cache_dir: Path, catalog: Catalog | None = None) -> None:
    """Load every data set in the catalog from ``cache_dir``, or as its stand-in.

    Call it once in a process that has imported TensorFlow and will fork: it runs no op, starts no thread, and reads no
    file but the catalog.
    """
    source = Source(Cache(cache_dir), catalog or read_catalog())
    subject.apply(source)
    keras_get_file.install(keras_get_file.FileIndex(source.cache, source.catalog))


def load(cache: Cache, data_set: DataSet) -> tuple[Arrays, bool]:
    """Load the arrays; also returns whether they are real.

    Raises:
        DamagedDataSet: there are real files, but they do not match the catalog.
    """
    real = cache.present(data_set)
    arrays = map_prepared(cache, data_set)
    if arrays is None:
        arrays = cache.read(data_set) if real else generate(data_set)
    return arrays, real


def _load_data(source: Source, original: LoadData, *args: Any, **kwargs: Any) -> tuple[Pair, Pair]:
    """Accept the arguments of Keras's own function; the path of its cache has no effect."""
    home = sys.modules[original.__module__]
    mode = inspect.signature(original).bind(*args, **kwargs).arguments.get("label_mode", "fine")
    if mode not in _LABEL_MODES:
        raise ValueError(f"label_mode must be 'fine' or 'coarse', not {mode!r}.")
    data_set = source.catalog[home.__name__.rpartition(".")[2]]
    arrays, real = load(source.cache, data_set)
    if not real:
        print(STAND_IN_LINE.format_map(data_set.model_dump(include={"title", "name", "stand_in"})), flush=True)
    first = data_set.format == "cifar.tar.gz" and home.backend.image_data_format() == "channels_first"
    return _pair(arrays, "train", mode, first), _pair(arrays, "test", mode, first)


for _home in _HOMES:
    for _name in DATA_SETS:
        subject.patch(f"{_home}.{_name}:load_data", everywhere=True)(_load_data)


def _pair(arrays: Arrays, part: str, label_mode: str, channels_first: bool) -> Pair:
    """Images and labels of one part, in the form of Keras's own ``load_data``: CIFAR-100's labels are int64."""
    x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
    if f"y_{part}_coarse" in arrays:
        y = (arrays[f"y_{part}_coarse"] if label_mode == "coarse" else y).astype(np.int64)
    return (x.transpose(0, 3, 1, 2) if channels_first else x), y
