"""``keras.utils.get_file`` in the sandbox: the catalog's files without a network, and a clear error for all others.

Keras's own function still decides where a file belongs, whether it exists, and how it is unpacked. Only the download is
replaced: a known URL gives the real file from the node's cache, or a file of the same format made from the stand-in.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from runners.datasets.cache import Cache
from runners.datasets.catalog import Catalog, DataFile, DataSet, DataSetError
from runners.datasets.prepared import map_prepared, prepared_file
from runners.datasets.standins import generate, write_file
from runners.guest.tf_patches.registry import Subject

_HOMES = ("keras.src.utils.file_utils", "tf_keras.src.utils.data_utils")
"""The modules in which both versions of Keras define ``get_file``."""

STAND_IN_LINE = (
    "Stand-in data: {title} is not in this node's cache, so {file} comes from {stand_in}, in the format of the real "
    "file. The operator can get the real one with: lockstep datasets fetch {name}"
)

_WEIGHTS = "keras-applications/"
"""Part of the URL of every file of pretrained weights."""
_DOWNLOADING = "Downloading data from "
"""The beginning of Keras's message about a download; a URL follows."""

subject = Subject(
    __name__,
    when="every process",
    because="a session has no network",
    since="Keras 3.15 and TF-Keras 2.21",
    test="tests/unit/runners/guest/tf_patches/test_keras_get_file.py"
    "::test_files_are_there_and_what_a_network_would_bring_is_refused",
)


class NoNetwork(DataSetError):
    """The requested file is available only over a network."""

    def __init__(self, url: str, catalog: Catalog) -> None:
        super().__init__(
            f"There is no network in the sandbox, so {url[:200]} cannot be downloaded. "
            f"You can load these with keras.datasets: {', '.join(catalog)}; and their files with keras.utils.get_file."
        )


class NoPretrainedWeights(DataSetError):
    """Pretrained weights were requested."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"There is no network in the sandbox, so the pretrained weights {url.rpartition('/')[2][:100]} cannot be "
            "downloaded. Use weights=None instead of weights='imagenet' to get the same layers with new weights to "
            "train."
        )


class FileIndex:
    """Every file in the catalog, by its URLs."""

    def __init__(self, cache: Cache, catalog: Catalog) -> None:
        self._cache = cache
        self._catalog = catalog
        self._files = {
            url: (data_set, file)
            for data_set in catalog.values()
            for file in data_set.files.values()
            for url in file.urls
        }

    def find(self, url: str) -> tuple[DataSet, DataFile] | None:
        """Find the catalog's file for a URL; None if there is none."""
        return self._files.get(url)

    def real(self, data_set: DataSet) -> bool:
        return self._cache.present(data_set)

    def refusal(self, url: str) -> DataSetError:
        """The error for a URL that is not in the catalog."""
        return NoPretrainedWeights(url) if _WEIGHTS in url else NoNetwork(url, self._catalog)

    def put(self, data_set: DataSet, file: DataFile, target: Path) -> None:
        """Put a file at ``target`` atomically, because workers of one sandbox may ask for it at the same time.

        Raises:
            DamagedDataSet: there are real files, but they do not match the catalog.
            OSError: the disk is full.
        """
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
            made = Path(folder) / file.name
            if self.real(data_set):
                self._cache.verify(data_set)
                shutil.copyfile(self._cache.folder(data_set) / file.name, made)
            elif ready := prepared_file(self._cache, data_set, file.name):
                shutil.copyfile(ready, made)
            else:
                write_file(data_set, file.name, made, lambda: map_prepared(self._cache, data_set) or generate(data_set))
            made.replace(target)


def install(index: FileIndex) -> None:
    """Serve the files of ``index`` in both versions of Keras; call it where ``keras_datasets.install`` is called."""
    subject.apply(index)


def _get_file(index: FileIndex, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A ``get_file`` that expects the digest that a known file has here."""
    given = inspect.signature(original).bind(*args, **kwargs)
    found = index.find(given.arguments.get("origin") or "")
    if found is None:
        return original(*args, **kwargs)
    data_set, file = found
    real = index.real(data_set)
    for name in ("md5_hash", "file_hash", "hash_algorithm"):
        given.arguments.pop(name, None)
    if real:
        given.arguments["file_hash"] = file.sha256 or file.md5
    path = original(*given.args, **given.kwargs)
    if not real:
        values = {"title": data_set.title, "name": data_set.name, "stand_in": data_set.stand_in}
        print(STAND_IN_LINE.format(file=file.name, **values), flush=True)
    return path


def _retrieve(
    index: FileIndex, original: Callable[..., Any], url: str, filename: str, *args: Any, **kwargs: Any
) -> Any:
    """A ``urlretrieve`` for URLs in the catalog and on the sandbox's own loopback."""
    found = index.find(url)
    if found is not None:
        return index.put(*found, Path(filename))
    if _is_near(url):
        return original(url, filename, *args, **kwargs)
    raise index.refusal(url)


def _is_near(url: str) -> bool:
    """Whether a URL is inside the sandbox."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme == "file" or parts.hostname in ("localhost", "127.0.0.1", "::1")


class _WithoutDownloads:
    """Keras's output module, without messages about downloads that do not happen."""

    def __init__(self, index: FileIndex, real: ModuleType) -> None:
        self._index = index
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def print_msg(self, message: str, line_break: bool = True) -> None:
        """Print a message of Keras, unless it announces a download."""
        _, download, url = message.partition(_DOWNLOADING)
        if not download or (_is_near(url) and self._index.find(url) is None):
            self._real.print_msg(message, line_break=line_break)


for _home in _HOMES:
    _user = (f"{_home}:get_file",)
    subject.patch(f"{_home}:urlretrieve", relies_on=("(url, filename, ...)",), used_by=_user)(_retrieve)
    subject.value(f"{_home}:io_utils", used_by=_user)(_WithoutDownloads)
    subject.patch(f"{_home}:get_file", relies_on=("(fname, origin, ...)",), everywhere=True)(_get_file)
