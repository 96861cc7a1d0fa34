"""Inside the sandbox: ``keras.datasets.<name>.load_data()`` and ``keras.utils.get_file`` answer without a network.

``install`` replaces the ``load_data`` of Keras 3 and of legacy Keras by one that reads the node's cache, where arrays
lie ready; IMDB and the houses are left to Keras, which gets their files. Modules imported already are changed in place;
for the others an import hook waits. It is called in a process that has imported TensorFlow and will fork: it runs no
op, starts no thread and reads no file but the catalog.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from runners.datasets.cache import Cache
from runners.datasets.catalog import Arrays, Catalog, DataSet, read_catalog
from runners.datasets.prepared import map_prepared
from runners.datasets.standins import generate
from runners.guest.tf_patches import keras_get_file

Pair = tuple[Any, Any]
LoadData = Callable[..., tuple[Pair, Pair]]
Change = Callable[[ModuleType], None]
"""What is done to a module right after it was imported."""

_HOMES = ("keras.src.datasets.", "tf_keras.src.datasets.")
"""Where the two Kerases define ``load_data``; their other modules only name it again."""
_LABEL_MODES = ("fine", "coarse")

STAND_IN_LINE = (
    "Stand-in data: {title} is not in this node's cache, so these are {stand_in} of the same size and type. "
    "An operator can get the real one with: lockstep datasets fetch {name}"
)


def install(cache_dir: Path, catalog: Catalog | None = None) -> None:
    """Make every data set of the catalog load from ``cache_dir``, or as its stand-in. Called once a process tree."""
    catalog, cache = catalog or read_catalog(), Cache(cache_dir)
    shelf = keras_get_file.FileIndex(cache, catalog)
    changes: dict[str, Change] = {
        home + data_set.name: functools.partial(_change_load_data, cache, data_set)
        for data_set in catalog.values()
        for home in _HOMES
        if data_set.reader == "lockstep"
    }
    changes |= {home: functools.partial(_change_get_file, shelf) for home in keras_get_file.HOMES}
    for name, change in changes.items():
        if (module := sys.modules.get(name)) is not None:
            change(module)
    sys.meta_path.insert(0, _ImportHook({name: change for name, change in changes.items() if name not in sys.modules}))


def load(cache: Cache, data_set: DataSet) -> tuple[Arrays, bool]:
    """The arrays, and whether they are real.

    Raises:
        DamagedDataSet: there are real files, but not as the catalog says.
    """
    real = cache.present(data_set)
    arrays = map_prepared(cache, data_set)
    if arrays is None:
        arrays = cache.read(data_set) if real else generate(data_set)
    return arrays, real


def _change_load_data(cache: Cache, data_set: DataSet, home: ModuleType) -> None:
    _replace_everywhere("load_data", home.load_data, _load_data(home, data_set, lambda: load(cache, data_set)), home)


def _change_get_file(shelf: keras_get_file.FileIndex, home: ModuleType) -> None:
    original = home.get_file
    _replace_everywhere("get_file", original, keras_get_file.install(shelf, home), home)


def _load_data(home: ModuleType, data_set: DataSet, loader: Callable[[], tuple[Arrays, bool]]) -> LoadData:
    """A ``load_data`` with the signature and the docstring of Keras's own. Where to cache is ours to know."""
    original: LoadData = home.load_data
    signature = inspect.signature(original)

    @functools.wraps(original)
    def load_data(*args: Any, **kwargs: Any) -> tuple[Pair, Pair]:
        mode = signature.bind(*args, **kwargs).arguments.get("label_mode", "fine")
        if mode not in _LABEL_MODES:
            raise ValueError(f"label_mode must be 'fine' or 'coarse', not {mode!r}.")
        arrays, real = loader()
        if not real:
            print(STAND_IN_LINE.format_map(data_set.model_dump(include={"title", "name", "stand_in"})), flush=True)
        first = data_set.format == "cifar.tar.gz" and home.backend.image_data_format() == "channels_first"
        return _pair(arrays, "train", mode, first), _pair(arrays, "test", mode, first)

    return load_data


def _pair(arrays: Arrays, part: str, label_mode: str, channels_first: bool) -> Pair:
    """Images and labels of one part, as Keras's own ``load_data`` forms them: CIFAR-100's labels are int64."""
    x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
    if f"y_{part}_coarse" in arrays:
        y = (arrays[f"y_{part}_coarse"] if label_mode == "coarse" else y).astype(np.int64)
    return (x.transpose(0, 3, 1, 2) if channels_first else x), y


def _replace_everywhere(name: str, original: object, ours: object, home: ModuleType) -> None:
    """Put ours in ``home`` and wherever in its Keras the original was named again."""
    family = home.__name__.partition(".")[0]
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == family and isinstance(module, ModuleType):
            known = vars(module)
            if known.get(name) is original:
                known[name] = ours
    setattr(home, name, ours)


class _ImportHook(importlib.abc.MetaPathFinder):
    """Waits for modules that are not imported yet and changes each right after its own code has run."""

    def __init__(self, waiting: dict[str, Change]) -> None:
        self._waiting = waiting

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self._waiting.get(fullname)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchingLoader(spec.loader, change)
        return spec


class _PatchingLoader(importlib.abc.Loader):
    """A loader that runs ``then`` after the real one."""

    def __init__(self, real: importlib.abc.Loader, then: Change) -> None:
        self._real = real
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._then(module)
