"""``sitecustomize`` of the Python programs that a session starts: they load data sets as the session itself does.

A session is forked from a process that has applied all patches. ``python main.py`` is not, so a sandbox has a copy of
this file on ``PYTHONPATH``, beside this package (``sandbox/policy.py``). Every Python program there runs it first, so
it only waits: nothing else of Lockstep is imported before the program imports Keras or TensorFlow Datasets.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from importlib.abc import MetaPathFinder
from pathlib import Path

_PATCHES = {"keras": "keras_datasets", "tf_keras": "keras_datasets", "tensorflow_datasets": "tfds_datasets"}


class _PatchFinder(MetaPathFinder):
    """Installs the patches of a library right before its import. Finds no module itself."""

    def __init__(self) -> None:
        self._installed: set[str] = set()

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        patches = _PATCHES.get(fullname)
        if patches is not None and patches not in self._installed:
            self._installed.add(patches)
            with suppress(ImportError):  # another Python, which does not have the library either
                self._install(patches)

    def _install(self, patches: str) -> None:
        folder = str(Path(__file__).parent)
        if folder not in sys.path:  # multiprocessing gives its children the session's path
            sys.path.append(folder)
        layout = importlib.import_module("runners.sandbox.layout")
        importlib.import_module(f"runners.guest.tf_patches.{patches}").install(Path(layout.DATASETS))


sys.meta_path.insert(0, _PatchFinder())
