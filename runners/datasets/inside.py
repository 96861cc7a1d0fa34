"""Inside the sandbox: ``keras.datasets.<name>.load_data()`` answers without a network.

``install`` replaces the ``load_data`` of Keras 3 and of legacy Keras by one that reads the node's cache. Modules
imported already are changed in place; for the others an import hook waits. It is called in a process that has
imported TensorFlow and will fork: it runs no op, starts no thread and reads no file but the catalog.
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

from runners.datasets.cache import Cache
from runners.datasets.catalog import Arrays, Catalog, DataSet, read_catalog
from runners.datasets.prepared import map_prepared
from runners.datasets.standins import draw

Pair = tuple[Any, Any]
LoadData = Callable[..., tuple[Pair, Pair]]

_HOMES = ("keras.src.datasets.", "tf_keras.src.datasets.")
"""Where the two Kerases define ``load_data``; their other modules only name it again."""

STAND_IN_LINE = (
    "Stand-in data: {title} is not in this node's cache, so these are drawn shapes of the same size and type. "
    "An operator can get the real one with: lockstep datasets fetch {name}"
)


def install(cache_dir: Path, catalog: Catalog | None = None) -> None:
    """Make every data set of the catalog load from ``cache_dir``, or as its stand-in. Called once a process tree."""
    loaders = {
        home + data_set.name: functools.partial(load, Cache(cache_dir), data_set)
        for data_set in (catalog or read_catalog()).values()
        for home in _HOMES
    }
    for name, loader in loaders.items():
        module = sys.modules.get(name)
        if module is not None:
            _replace_everywhere(module, loader)
    sys.meta_path.insert(0, _Patcher({name: load for name, load in loaders.items() if name not in sys.modules}))


def load(cache: Cache, data_set: DataSet) -> tuple[Arrays, bool]:
    """The arrays, and whether they are real.

    Raises:
        DamagedDataSet: there are real files, but not as the catalog says.
    """
    real = cache.present(data_set)
    arrays = map_prepared(cache, data_set)
    if arrays is None:
        arrays = cache.read(data_set) if real else draw(data_set)
    return arrays, real


def _load_data(original: LoadData, data_set: DataSet, loader: Callable[[], tuple[Arrays, bool]]) -> LoadData:
    """A ``load_data`` with the signature and the docstring of Keras's own. Where to cache is ours to know."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def load_data(*args: Any, **kwargs: Any) -> tuple[Pair, Pair]:
        signature.bind(*args, **kwargs)
        arrays, real = loader()
        if not real:
            print(STAND_IN_LINE.format(title=data_set.title, name=data_set.name), flush=True)
        return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])

    return load_data


def _replace_everywhere(home: ModuleType, loader: functools.partial[tuple[Arrays, bool]]) -> None:
    """Put ours in ``home`` and wherever the original was named again."""
    original = home.load_data
    ours = _load_data(original, loader.args[1], loader)
    family = home.__name__.partition(".")[0]
    ending = home.__name__.rpartition(".")[2]
    for name, module in list(sys.modules.items()):
        if name.startswith(family) and name.endswith(ending) and getattr(module, "load_data", None) is original:
            module.load_data = ours  # type: ignore[attr-defined]


class _Patcher(importlib.abc.MetaPathFinder):
    """Waits for modules that are not imported yet and changes each right after its own code has run."""

    def __init__(self, waiting: dict[str, functools.partial[tuple[Arrays, bool]]]) -> None:
        self._waiting = waiting

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        loader = self._waiting.get(fullname)
        if loader is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _After(spec.loader, lambda module: _replace_everywhere(module, loader))
        return spec


class _After(importlib.abc.Loader):
    """A loader that runs ``then`` after the real one."""

    def __init__(self, real: importlib.abc.Loader, then: Callable[[ModuleType], None]) -> None:
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
