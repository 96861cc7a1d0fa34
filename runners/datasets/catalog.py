"""The catalog: which data sets exist, where the real files come from, and how to recognize them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

_FILE = Path(__file__).with_name("catalog.toml")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", re.ASCII)
_SET_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)

Arrays = dict[str, npt.NDArray[Any]]
"""By their names in the catalog, such as ``x_train``."""


class DataSetError(Exception):
    """A data set cannot be provided. ``str()`` tells people what failed and what to do next."""


class UnknownDataSet(DataSetError):
    """The catalog has no data set of that name."""

    def __init__(self, name: str, known: Mapping[str, DataSet]) -> None:
        super().__init__(f"There is no data set {name[:60]!r}; known data sets: {', '.join(known)}.")
        self.name = name


class BadCatalog(DataSetError):
    """A catalog file is inconsistent or incomplete."""


class Undecodable(ValueError):
    """The bytes do not match the catalog. ``str()`` says what is wrong, without naming the file."""


class UndecodableFile(Undecodable):
    """``file`` cannot be decoded."""

    def __init__(self, file: str, detail: str) -> None:
        super().__init__(detail)
        self.file = file


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataFile(_Entry):
    """One file of a data set, and how to know that it is the right one."""

    name: str
    size: int = Field(ge=1)
    """Bytes."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    md5: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None
    urls: tuple[Annotated[str, Field(pattern="^https?://")], ...] = ()
    """Where to download it, best source first."""

    @property
    def digests(self) -> dict[str, str]:
        """Every recorded digest, by the algorithm's name in hashlib."""
        known = {"sha256": self.sha256, "md5": self.md5}
        return {algorithm: digest for algorithm, digest in known.items() if digest}

    @model_validator(mode="after")
    def _has_a_digest(self) -> Self:
        if not self.digests:
            raise ValueError(f"{self.name} has neither sha256 nor md5")
        return self


class ArraySpec(_Entry):
    """One array that ``load_data`` returns."""

    file: str
    dtype: Literal["uint8", "int64", "float32", "float64", "object"]
    """``object`` is for lists of unequal length."""
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


class DataSet(_Entry):
    """One data set, as Keras knows it: ``keras.datasets.<name>.load_data()``."""

    name: str
    title: str
    homepage: str
    licence: str
    format: Literal["idx.gz", "npz", "cifar.tar.gz"]
    reader: Literal["lockstep", "keras"] = "lockstep"
    """Who reads the files in a session. What Lockstep reads is prepared as arrays, what Keras reads as files."""
    stand_in: str
    """What its stand-in contains, for the notice to learners: ``made-up patterns``."""
    classes: tuple[str, ...] = ()
    arrays: Mapping[str, ArraySpec]
    files: Mapping[str, DataFile]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together; of lists, of their files."""
        lists = any(spec.dtype == "object" for spec in self.arrays.values())
        return self.size if lists else sum(spec.nbytes for spec in self.arrays.values())


Catalog = Mapping[str, DataSet]


def _data_set(name: str, table: Any) -> DataSet:
    if not isinstance(table, dict):
        raise BadCatalog(f"{name}: a table was expected")
    files = {file: {"name": file, **entry} for file, entry in table.get("files", {}).items()}
    data_set = DataSet.model_validate({**table, "name": name, "files": files})
    wrong = [file for file in files if not _FILE_NAME.fullmatch(file)]
    if wrong or not _SET_NAME.fullmatch(name):
        raise BadCatalog(f"{name}: not a valid name: {(wrong or [name])[0]!r}")
    if data_set.reader == "lockstep" and any(spec.dtype == "object" for spec in data_set.arrays.values()):
        raise BadCatalog(f'{name}: lists cannot be memory-mapped; set reader = "keras"')
    described = {spec.file for spec in data_set.arrays.values()}
    unmatched = described - set(files) if data_set.reader == "keras" else described ^ set(files)
    if unmatched:
        raise BadCatalog(f"{name}: arrays and files do not match: {', '.join(sorted(unmatched))}")
    return data_set


def read_catalog(path: Path = _FILE) -> Catalog:
    """Read a catalog file.

    Raises:
        BadCatalog: it is not TOML, lacks a field, or an array names a file that is not listed.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return MappingProxyType({name: _data_set(name, table) for name, table in tables.items()})
    except (tomllib.TOMLDecodeError, ValidationError, TypeError) as e:
        raise BadCatalog(f"{path.name}: {e}") from e


def find_data_set(catalog: Catalog, name: str) -> DataSet:
    """Find a data set by its name. Raises UnknownDataSet."""
    try:
        return catalog[name]
    except KeyError:
        raise UnknownDataSet(name, catalog) from None
