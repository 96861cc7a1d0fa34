"""The catalog names every file exactly, or is rejected."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from runners.datasets.catalog import BadCatalog, Catalog, UnknownDataSet, find_data_set, read_catalog

GOOD = """
[toy]
title = "Toy"
homepage = "https://example.org"
licence = "MIT"
format = "idx.gz"
stand_in = "toys"
classes = ["a", "b"]
[toy.arrays]
x_train = { file = "x.gz", dtype = "uint8", shape = [2, 3] }
[toy.files."x.gz"]
size = 10
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
urls = ["https://example.org/x.gz"]
"""


def _read(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    return read_catalog(path)


def test_fashion_mnist_has_the_shapes_and_sizes_of_the_original() -> None:
    data_set = find_data_set(read_catalog(), "fashion_mnist")
    assert {name: spec.shape for name, spec in data_set.arrays.items()} == {
        "x_train": (60000, 28, 28),
        "y_train": (60000,),
        "x_test": (10000, 28, 28),
        "y_test": (10000,),
    }
    assert data_set.size == 30_878_645
    assert len(data_set.classes) == 10
    assert data_set.arrays["x_train"].nbytes == 47_040_000


ONE_DIGEST = {
    "imdb_word_index.json": {"md5"},
    "boston_housing.npz": {"sha256"},
    "california_housing.npz": {"sha256"},
}
"""Files of which no second one is published."""


def test_every_file_of_the_catalog_has_an_address_and_each_published_digest() -> None:
    for data_set in read_catalog().values():
        for file in data_set.files.values():
            assert set(file.digests) == ONE_DIGEST.get(file.name, {"sha256", "md5"})
            assert file.urls


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_keras_expects_the_same_digest_of_every_file_from_the_same_address(keras: str) -> None:
    spec = importlib.util.find_spec(keras)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "src" / "datasets"
    for data_set in read_catalog().values():
        module = folder / f"{data_set.name}.py"
        if not module.exists():
            assert (keras, data_set.name) == ("tf_keras", "california_housing")
            continue
        source = module.read_text()
        pinned = re.findall(r'"([0-9a-f]{32}|[0-9a-f]{64})"', source)
        assert sorted(pinned) == sorted(set(pinned) & {d for f in data_set.files.values() for d in f.digests.values()})
        assert len(pinned) == (0 if data_set.name == "fashion_mnist" else len(data_set.files))
        for file in data_set.files.values():
            assert file.urls[0].rpartition("/")[0] in source
            assert file.name in source


def test_what_keras_reads_may_have_files_without_arrays_and_nothing_else_may(tmp_path: Path) -> None:
    more = GOOD + '[toy.files."y.json"]\nsize = 1\nmd5 = "00000000000000000000000000000000"\n'
    with pytest.raises(BadCatalog, match=r"arrays and files do not match: y\.json"):
        _read(tmp_path, more)
    toy = _read(tmp_path, more.replace("classes", 'reader = "keras"\nclasses', 1))["toy"]
    assert toy.files["y.json"].digests == {"md5": "0" * 32}
    assert toy.nbytes == 6


def test_a_file_without_any_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCatalog, match=r"x\.gz has neither sha256 nor md5"):
        _read(tmp_path, re.sub("sha256.*\n", "", GOOD))


def test_a_good_catalog_is_read(tmp_path: Path) -> None:
    toy = _read(tmp_path, GOOD)["toy"]
    assert toy.files["x.gz"].digests == {"sha256": "0" * 64}
    assert toy.arrays["x_train"].nbytes == 6


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownDataSet, match="no data set 'fashoin'; known data sets: fashion_mnist"):
        find_data_set(read_catalog(), "fashoin")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('sha256 = "00', 'sha256 = "0g', "sha256"),
        ("size = 10", "size = 0", "size"),
        ("size = 10", "", "size"),
        ("https://example.org/x.gz", "file:///etc/passwd", "urls"),
        ('dtype = "uint8"', 'dtype = "complex64"', "dtype"),
        ('dtype = "uint8"', 'dtype = "object"', 'lists cannot be memory-mapped; set reader = "keras"'),
        ('format = "idx.gz"', 'format = "pickle"', "format"),
        ('file = "x.gz"', 'file = "y.gz"', "arrays and files do not match: x.gz, y.gz"),
        ('"x.gz"', '"../x.gz"', "not a valid name: '../x.gz'"),
        ("[toy", '["../toy"', "not a valid name: '../toy'"),
        ("classes =", "colours =", "colours"),
        ("[toy]", "[toy", "catalog.toml"),
        ("[toy]", 'stray = "word"\n[toy]', "stray: a table was expected"),
    ],
)
def test_a_bad_catalog_is_refused_with_the_reason(tmp_path: Path, old: str, new: str, reason: str) -> None:
    with pytest.raises(BadCatalog, match=re.escape(reason)):
        _read(tmp_path, GOOD.replace(old, new))
