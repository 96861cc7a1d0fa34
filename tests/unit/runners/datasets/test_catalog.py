"""The catalog names every file exactly, or is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runners.datasets.catalog import BadCatalog, UnknownDataSet, pick, read_catalog

GOOD = """
[toy]
title = "Toy"
homepage = "https://example.org"
licence = "MIT"
format = "idx.gz"
classes = ["a", "b"]
[toy.arrays]
x_train = { file = "x.gz", dtype = "uint8", shape = [2, 3] }
[toy.files."x.gz"]
size = 10
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
urls = ["https://example.org/x.gz"]
"""


def _read(tmp_path: Path, text: str):
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    return read_catalog(path)


def test_fashion_mnist_has_the_shapes_and_sizes_of_the_original():
    data_set = pick(read_catalog(), "fashion_mnist")
    assert {name: spec.shape for name, spec in data_set.arrays.items()} == {
        "x_train": (60000, 28, 28),
        "y_train": (60000,),
        "x_test": (10000, 28, 28),
        "y_test": (10000,),
    }
    assert data_set.size == 30_878_645
    assert len(data_set.classes) == 10
    assert data_set.arrays["x_train"].nbytes == 47_040_000


def test_every_file_of_the_shipped_catalog_has_two_digests_and_an_address():
    for data_set in read_catalog().values():
        for file in data_set.files.values():
            assert set(file.digests) == {"sha256", "md5"}
            assert file.urls


def test_a_good_catalog_is_read(tmp_path: Path):
    toy = _read(tmp_path, GOOD)["toy"]
    assert toy.files["x.gz"].digests == {"sha256": "0" * 64}
    assert toy.arrays["x_train"].nbytes == 6


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UnknownDataSet, match="no data set 'fashoin'; known are: fashion_mnist"):
        pick(read_catalog(), "fashoin")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('sha256 = "00', 'sha256 = "0g', "sha256"),
        ("size = 10", "size = 0", "size"),
        ("size = 10", "", "size"),
        ("https://example.org/x.gz", "file:///etc/passwd", "urls"),
        ('dtype = "uint8"', 'dtype = "object"', "dtype"),
        ('format = "idx.gz"', 'format = "pickle"', "format"),
        ('file = "x.gz"', 'file = "y.gz"', "arrays and files do not match: x.gz, y.gz"),
        ('"x.gz"', '"../x.gz"', "not a plain name: '../x.gz'"),
        ("[toy", '["../toy"', "not a plain name: '../toy'"),
        ("classes =", "colours =", "classes"),
        ("[toy]", "[toy", "catalog.toml"),
        ("[toy]", 'stray = "word"\n[toy]', "stray: a table was expected"),
    ],
)
def test_a_bad_catalog_is_refused_with_the_reason(tmp_path: Path, old: str, new: str, reason: str):
    with pytest.raises(BadCatalog, match=re.escape(reason)):
        _read(tmp_path, GOOD.replace(old, new))
