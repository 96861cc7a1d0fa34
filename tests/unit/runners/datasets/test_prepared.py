"""Prepared arrays are used only while they match the cache, and are shared until written to."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from runners.datasets.cache import Cache, CacheState
from runners.datasets.catalog import Arrays
from runners.datasets.prepared import Readiness, map_prepared, prepare
from runners.datasets.standins import EDITION, generate
from tests.unit.runners.datasets.conftest import Tiny


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def _prepare(cache: Cache, tiny: Tiny) -> Readiness:
    (readiness,) = prepare(cache.root, {"fashion_mnist": tiny.data_set})
    return readiness


def _arrays(cache: Cache, tiny: Tiny) -> Arrays:
    arrays = map_prepared(cache, tiny.data_set)
    assert arrays is not None
    return arrays


def test_an_empty_cache_gets_the_stand_in(cache: Cache, tiny: Tiny) -> None:
    assert map_prepared(cache, tiny.data_set) is None
    readiness = _prepare(cache, tiny)
    assert (readiness.state, readiness.prepared, readiness.detail) == (CacheState.absent, True, "")
    for name, array in generate(tiny.data_set).items():
        assert np.array_equal(_arrays(cache, tiny)[name], array)


def test_a_whole_data_set_is_unpacked(cache: Cache, tiny: Tiny) -> None:
    tiny.put(cache.folder(tiny.data_set))
    assert _prepare(cache, tiny).state is CacheState.whole
    for name, array in tiny.arrays.items():
        assert np.array_equal(_arrays(cache, tiny)[name], array)


def test_a_second_preparation_changes_no_file(cache: Cache, tiny: Tiny) -> None:
    _prepare(cache, tiny)
    before = {path: path.stat().st_mtime_ns for path in cache.root.rglob("*") if path.is_file()}
    _prepare(cache, tiny)
    assert before == {path: path.stat().st_mtime_ns for path in cache.root.rglob("*") if path.is_file()}


def test_real_files_that_arrive_end_the_stand_in(cache: Cache, tiny: Tiny) -> None:
    _prepare(cache, tiny)
    tiny.put(cache.folder(tiny.data_set))
    assert map_prepared(cache, tiny.data_set) is None
    _prepare(cache, tiny)
    assert np.array_equal(_arrays(cache, tiny)["x_test"], tiny.arrays["x_test"])


@pytest.mark.parametrize("damage", [b"", b"short"])
def test_a_cache_file_that_changes_ends_the_prepared_copy(cache: Cache, tiny: Tiny, damage: bytes) -> None:
    tiny.put(cache.folder(tiny.data_set))
    _prepare(cache, tiny)
    (cache.folder(tiny.data_set) / "y_test.gz").write_bytes(damage)
    assert map_prepared(cache, tiny.data_set) is None
    readiness = _prepare(cache, tiny)
    assert (readiness.state, readiness.prepared) == (CacheState.damaged, False)
    assert "fashion_mnist/y_test.gz in this node's cache was rejected" in readiness.detail
    assert map_prepared(cache, tiny.data_set) is None


def test_a_cache_file_that_vanishes_ends_the_prepared_copy(cache: Cache, tiny: Tiny) -> None:
    tiny.put(cache.folder(tiny.data_set))
    _prepare(cache, tiny)
    (cache.folder(tiny.data_set) / "y_test.gz").unlink()
    assert map_prepared(cache, tiny.data_set) is None


@pytest.mark.parametrize("name", ["x_train", "record.json"])
@pytest.mark.parametrize("harm", ["truncate", "touch", "remove"])
def test_a_harmed_prepared_file_is_not_used(cache: Cache, tiny: Tiny, name: str, harm: str) -> None:
    _prepare(cache, tiny)
    path = cache.root / ".prepared" / "fashion_mnist" / name
    if harm == "truncate":
        os.truncate(path, 20)
    elif harm == "remove":
        path.unlink()
    elif name == "record.json":
        path.write_text('{"origin": "real"}')
    else:
        os.utime(path, ns=(1, 1))
    assert map_prepared(cache, tiny.data_set) is None
    _prepare(cache, tiny)
    assert np.array_equal(_arrays(cache, tiny)["x_train"], generate(tiny.data_set)["x_train"])


def test_a_copy_of_another_edition_of_the_generators_is_not_used(cache: Cache, tiny: Tiny) -> None:
    _prepare(cache, tiny)
    record = cache.root / ".prepared" / "fashion_mnist" / "record.json"
    record.write_text(record.read_text().replace(f"stand-in {EDITION}", "stand-in 0"))
    assert map_prepared(cache, tiny.data_set) is None


def test_arrays_may_be_written_without_touching_the_copy(cache: Cache, tiny: Tiny) -> None:
    _prepare(cache, tiny)
    mine = _arrays(cache, tiny)["x_train"]
    assert type(mine) is np.ndarray
    mine[:] = 0
    assert _arrays(cache, tiny)["x_train"].any()


def test_a_mapped_array_outlives_its_replacement(cache: Cache, tiny: Tiny) -> None:
    _prepare(cache, tiny)
    mine = _arrays(cache, tiny)["x_test"]
    before = mine.copy()
    tiny.put(cache.folder(tiny.data_set))
    _prepare(cache, tiny)
    assert np.array_equal(mine, before)


def test_a_cache_that_cannot_be_written_is_said_and_not_fatal(tmp_path: Path, tiny: Tiny) -> None:
    (tmp_path / ".prepared").write_text("a file in the way")
    readiness = _prepare(Cache(tmp_path), tiny)
    assert (readiness.state, readiness.prepared) == (CacheState.absent, False)
    assert "cannot be written" in readiness.detail


def test_others_may_read_prepared_files_whatever_the_umask(cache: Cache, tiny: Tiny) -> None:
    before = os.umask(0o077)
    try:
        _prepare(cache, tiny)
    finally:
        os.umask(before)
    folder = cache.root / ".prepared" / "fashion_mnist"
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o755
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in folder.iterdir())
