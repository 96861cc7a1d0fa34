"""A file in the cache is the right one, or is rejected by name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from runners.datasets.cache import Cache, CacheState, DamagedDataSet
from tests.unit.runners.datasets.conftest import Tiny, make_later


@pytest.fixture
def cache(tmp_path: Path, tiny: Tiny) -> Cache:
    tiny.put(tmp_path / "fashion_mnist")
    return Cache(tmp_path)


def test_an_empty_cache_lacks_the_data_set(tmp_path: Path, tiny: Tiny) -> None:
    assert Cache(tmp_path).glance(tiny.data_set) == (CacheState.absent, "")
    assert Cache(tmp_path / "nowhere").present(tiny.data_set) is False


def test_a_whole_data_set_is_read(cache: Cache, tiny: Tiny) -> None:
    assert cache.glance(tiny.data_set) == (CacheState.whole, "")
    arrays = cache.read(tiny.data_set)
    for name, array in tiny.arrays.items():
        assert np.array_equal(arrays[name], array)


def test_a_truncated_file_is_refused_by_name_with_the_next_step(cache: Cache, tiny: Tiny) -> None:
    path = cache.root / "fashion_mnist" / "x_test.gz"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DamagedDataSet) as caught:
        cache.read(tiny.data_set)
    size = len(tiny.contents["x_test.gz"])
    assert str(caught.value) == (
        f"Fashion-MNIST: the file fashion_mnist/x_test.gz in this node's cache was rejected: it has {size - 7:,} bytes "
        f"instead of {size:,}. It was not used. "
        "The operator can replace it with: lockstep datasets fetch fashion_mnist"
    )
    assert cache.glance(tiny.data_set)[0] is CacheState.damaged


def test_one_changed_byte_is_found_by_its_digest(cache: Cache, tiny: Tiny) -> None:
    path = cache.root / "fashion_mnist" / "y_train.gz"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    assert cache.glance(tiny.data_set)[0] is CacheState.whole  # a glance reads no bytes
    with pytest.raises(DamagedDataSet, match=r"y_train\.gz .* its SHA256 is [0-9a-f]{12}… instead of"):
        cache.verify(tiny.data_set)


def test_a_change_after_a_good_reading_is_found(cache: Cache, tiny: Tiny) -> None:
    cache.verify(tiny.data_set)
    path = cache.root / "fashion_mnist" / "y_test.gz"
    path.write_bytes(bytes(len(tiny.contents["y_test.gz"])))
    make_later(path)
    with pytest.raises(DamagedDataSet, match=r"y_test\.gz"):
        cache.verify(tiny.data_set)


def test_digests_of_an_unchanged_file_are_read_once(cache: Cache, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.verify(tiny.data_set)
    monkeypatch.setattr("runners.datasets.cache.wrong_digest", lambda path, file: "was read again")
    cache.verify(tiny.data_set)
    os.utime(cache.root / "fashion_mnist" / "y_test.gz", ns=(1, 1))
    with pytest.raises(DamagedDataSet, match="was read again"):
        cache.verify(tiny.data_set)


def test_a_missing_file_makes_the_whole_data_set_refused(cache: Cache, tiny: Tiny) -> None:
    (cache.root / "fashion_mnist" / "y_test.gz").unlink()
    with pytest.raises(DamagedDataSet, match=r"y_test\.gz .* it is missing"):
        cache.read(tiny.data_set)


def test_every_digest_on_record_is_checked(cache: Cache, tiny: Tiny) -> None:
    file = tiny.data_set.files["y_test.gz"]
    other = file.model_copy(update={"md5": "0" * 32})
    data_set = tiny.data_set.model_copy(update={"files": {**tiny.data_set.files, "y_test.gz": other}})
    with pytest.raises(DamagedDataSet, match="its MD5 is"):
        cache.verify(data_set)


def test_a_file_with_the_right_digest_and_the_wrong_shape_is_refused(cache: Cache, tiny: Tiny) -> None:
    spec = tiny.data_set.arrays["x_test"].model_copy(update={"shape": (19, 28, 28)})
    data_set = tiny.data_set.model_copy(update={"arrays": {**tiny.data_set.arrays, "x_test": spec}})
    with pytest.raises(DamagedDataSet, match=r"x_test\.gz .* unpacks to more than"):
        cache.read(data_set)


def test_a_folder_in_place_of_a_file_is_refused(cache: Cache, tiny: Tiny) -> None:
    path = cache.root / "fashion_mnist" / "y_test.gz"
    path.unlink()
    path.mkdir()
    with pytest.raises(DamagedDataSet, match=r"y_test\.gz"):
        cache.verify(tiny.data_set)
