"""``get_file`` in both versions of Keras: known files work without a network, others get a clear error."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from runners.datasets.cache import Cache, DamagedDataSet
from runners.datasets.catalog import read_catalog
from runners.datasets.prepared import prepare, prepared_file
from runners.guest.tf_patches import keras_get_file
from tests.unit.runners.datasets.conftest import Learn, Tiny

READ = """
    get_file, G = tf.keras.utils.get_file, "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
    told["lines"] = []
    def say(call):
        line, result = output(call)
        told["lines"].append(line)
        return result
    chosen = dict(num_words=1000, maxlen=150, skip_top=3, index_from=4)
    (x, y), (tx, ty) = say(lambda: tf.keras.datasets.imdb.load_data(**chosen))
    told["imdb"] = [len(x) == len(y), len(tx) > 1000, max(map(max, x)), sorted(set(y.tolist())), x[0][0], str(x.dtype)]
    index = say(tf.keras.datasets.imdb.get_word_index)
    told["index"] = [len(index), index["word1"]]
    houses = say(lambda: tf.keras.datasets.boston_housing.load_data(test_split=0.5, seed=3))
    told["houses"] = form(houses)
    again = say(lambda: tf.keras.datasets.boston_housing.load_data("mine.npz", 0.5, 3))
    told["again"] = bool((again[0][0] == houses[0][0]).all())
    if hasattr(tf.keras.datasets, "california_housing"):
        told["california"] = form(say(lambda: tf.keras.datasets.california_housing.load_data(version="small")))
        told["lines"].pop()
    path = say(lambda: get_file("digits.npz", G + "mnist.npz", file_hash="0" * 64))
    with np.load(path) as file:
        told["file"] = [Path(path).name, list(file["x_train"].shape)]
    told["left"] = sorted(p.name for p in Path(path).parent.iterdir())
    told["refusals"] = []
    def refused(call):
        try:
            call()
        except Exception as e:
            told["refusals"].append([type(e).__name__, str(e)])
    refused(lambda: output(lambda: get_file("a.zip", "https://example.org/a.zip")))
    refused(lambda: output(lambda: tf.keras.applications.MobileNetV2(input_shape=(96, 96, 3), alpha=0.35)))
    own = cache / "own.txt"
    own.write_text("mine")
    told["own"] = Path(output(lambda: get_file("own.txt", own.as_uri()))[1]).read_text()
"""

LINE = (
    "Stand-in data: {} is not in this node's cache, so {} comes from {}, in the format of the real file. "
    "The operator can get the real one with: lockstep datasets fetch {}\n"
)


@pytest.mark.parametrize("keras", [3, pytest.param(2, marks=pytest.mark.long)])
def test_files_are_there_and_what_a_network_would_bring_is_refused(tmp_path: Path, learner: Learn, keras: int) -> None:
    told = learner(READ, tmp_path, keras)
    assert told["imdb"] == [True, True, 999, [0, 1], 2, "object"]
    assert told["index"] == [88_584, 1]
    assert told["houses"] == [[[[253, 13], "float64"], [[253], "float64"]]] * 2
    assert told["again"]
    assert told.get("california", "none") == (
        "none"
        if keras == 2
        else [[[[480, 8], "float32"], [[480], "float32"]], [[[120, 8], "float32"], [[120], "float32"]]]
    )
    houses = LINE.format("Boston Housing", "boston_housing.npz", "made-up numbers", "boston_housing")
    assert told["lines"] == [
        LINE.format("IMDB", "imdb.npz", "made-up reviews", "imdb"),
        LINE.format("IMDB", "imdb_word_index.json", "made-up reviews", "imdb"),
        houses,
        houses,
        LINE.format("MNIST", "mnist.npz", "made-up patterns", "mnist"),
    ]
    assert told["file"] == ["digits.npz", [60000, 28, 28]]
    assert set(told["left"]) - {"california_housing.npz"} == {
        *("boston_housing.npz", "mine.npz", "digits.npz", "imdb.npz", "imdb_word_index.json")
    }
    (kind, network), (other, weights) = told["refusals"]
    assert (kind, other) == ("NoNetwork", "NoPretrainedWeights")
    assert network == (
        "There is no network in the sandbox, so https://example.org/a.zip cannot be downloaded. You can load these "
        "with keras.datasets: fashion_mnist, mnist, cifar10, cifar100, imdb, boston_housing, california_housing; "
        "and their files with keras.utils.get_file."
    )
    assert weights.startswith("There is no network in the sandbox, so the pretrained weights mobilenet_v2_weights_")
    assert weights.endswith(
        "Use weights=None instead of weights='imagenet' to get the same layers with new weights to train."
    )
    assert told["own"] == "mine"


EXTRACT = """
    def get(legacy):
        utils = __import__("tf_keras" if legacy else "keras").utils
        return output(lambda: utils.get_file(
            "cifar-10-batches-py", "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", untar=True,
            cache_subdir="two" if legacy else "three",
        ))
    for legacy in (False, True):
        line, path = get(legacy)
        told[str(legacy)] = [line, sorted(p.name for p in Path(path).rglob("*") if p.is_file())]
"""


def test_an_archive_is_unpacked_as_it_would_be(tmp_path: Path, learner: Learn) -> None:
    told = learner(EXTRACT, tmp_path)
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    line = LINE.format("CIFAR-10", "cifar-10-python.tar.gz", "made-up patterns", "cifar10")
    assert told["False"] == told["True"] == [line, names]


def _home(download: Path, index: keras_get_file.FileIndex) -> Any:
    """A module like Keras's, as far as needed here, with the patches in it."""

    def get_file(fname: str, origin: str, file_hash: str | None = None) -> str:
        home.io_utils.print_msg(f"Downloading data from {origin}")
        home.urlretrieve(origin, str(download / fname))
        if file_hash and hashlib.sha256((download / fname).read_bytes()).hexdigest() != file_hash:
            raise ValueError("corrupted")
        return str(download / fname)

    output = SimpleNamespace(print_msg=lambda message, line_break=True: print(message), other=7)
    home = SimpleNamespace(
        get_file=partial(keras_get_file._get_file, index, get_file),
        io_utils=keras_get_file._WithoutDownloads(index, cast(ModuleType, output)),
        urlretrieve=partial(keras_get_file._retrieve, index, lambda *_: print("asked the network")),
    )
    return home


def test_the_real_file_is_given_without_a_word_and_checked(
    tmp_path: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny.put(tmp_path / "fashion_mnist")
    home = _home(tmp_path, keras_get_file.FileIndex(Cache(tmp_path), {"fashion_mnist": tiny.data_set}))
    path = home.get_file("mine.gz", "http://127.0.0.1:9/x_test.gz", "0" * 64)
    assert Path(path).read_bytes() == tiny.contents["x_test.gz"]
    assert capsys.readouterr().out == ""
    (folder / "x_test.gz").write_bytes(b"half")
    with pytest.raises(DamagedDataSet):
        home.get_file("mine.gz", "http://127.0.0.1:9/x_test.gz")
    assert {path.name for path in tmp_path.iterdir()} == {"fashion_mnist", "mine.gz"}


def test_another_address_is_kerass_own_business_only_within_the_sandbox(
    tmp_path: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]
) -> None:
    home = _home(tmp_path, keras_get_file.FileIndex(Cache(tmp_path), {"fashion_mnist": tiny.data_set}))
    home.get_file("a", "http://localhost:8000/a")
    assert capsys.readouterr().out == "Downloading data from http://localhost:8000/a\nasked the network\n"
    for url in ("http://localhost.example.org/a", "gs://bucket/a", "nothing"):
        with pytest.raises(keras_get_file.NoNetwork):
            home.get_file("a", url)
    assert capsys.readouterr().out == ""
    home.io_utils.print_msg("A word")
    assert capsys.readouterr().out == "A word\n"
    assert home.io_utils.other == 7


def test_files_that_keras_reads_are_made_once(tmp_path: Path) -> None:
    catalog = {name: read_catalog()[name] for name in ("imdb", "boston_housing")}
    (reviews, houses) = prepare(tmp_path, catalog)
    assert reviews.prepared
    assert houses.prepared
    cache = Cache(tmp_path)
    path = prepared_file(cache, catalog["imdb"], "imdb_word_index.json")
    assert path is not None
    assert len(json.loads(path.read_text())) == 88_584
    before = path.stat().st_mtime_ns
    prepare(tmp_path, catalog)
    assert path.stat().st_mtime_ns == before
    target = tmp_path / "mine.npz"
    keras_get_file.FileIndex(cache, catalog).put(
        catalog["boston_housing"], catalog["boston_housing"].files["boston_housing.npz"], target
    )
    assert np.load(target)["x"].shape == (506, 13)
    cache.folder(catalog["imdb"]).mkdir()
    assert prepared_file(cache, catalog["imdb"], "imdb_word_index.json") is None
    (reviews, _) = prepare(tmp_path, catalog)
    assert not reviews.prepared
    assert "imdb/imdb.npz in this node's cache was rejected: it is missing" in reviews.detail


def test_a_disk_that_is_nearly_full_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100_000))
    (houses,) = prepare(tmp_path, {"boston_housing": read_catalog()["boston_housing"]})
    assert (houses.prepared, houses.detail) == (False, f"not enough space in {tmp_path}")
    assert list(tmp_path.iterdir()) == []
