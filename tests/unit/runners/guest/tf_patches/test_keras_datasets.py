"""Learner code that calls ``load_data()`` gets arrays without a network, in both versions of Keras, or an error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from runners.datasets.cache import Cache, DamagedDataSet
from runners.datasets.catalog import read_catalog
from runners.datasets.prepared import prepare
from runners.guest.tf_patches.keras_datasets import DATA_SETS, load
from tests.unit.runners.datasets.conftest import Learn, Tiny

LINE = (
    "Stand-in data: Fashion-MNIST is not in this node's cache, so these are made-up patterns of the same size and "
    "type. The operator can get the real one with: lockstep datasets fetch fashion_mnist\n"
)


def test_every_data_set_that_the_catalog_does_not_leave_to_keras_is_patched() -> None:
    assert {each.name for each in read_catalog().values() if each.reader == "lockstep"} == set(DATA_SETS)


FORM = [
    [[[60000, 28, 28], "uint8"], [[60000], "uint8"]],
    [[[10000, 28, 28], "uint8"], [[10000], "uint8"]],
]


def test_keras_3_and_a_later_import_of_tf_keras_get_the_stand_in_and_say_so(tmp_path: Path, learner: Learn) -> None:
    told = learner(
        """
        told["line"], result = output(tf.keras.datasets.fashion_mnist.load_data)
        told["form"] = form(result)
        import keras
        from keras.datasets.fashion_mnist import load_data
        told["same"] = load_data is keras.datasets.fashion_mnist.load_data is tf.keras.datasets.fashion_mnist.load_data
        told["doc"] = "Fashion-MNIST" in load_data.__doc__
        try:
            load_data("surplus")
        except TypeError as e:
            told["surplus"] = str(e)
        told["early"] = "tf_keras" in sys.modules
        import tf_keras
        told["legacy"], again = output(lambda: tf_keras.datasets.fashion_mnist.load_data(cache_dir="/nowhere"))
        told["equal"] = bool((again[0][0] == result[0][0]).all())
        result[0][0][0] = 7
        told["loader"] = type(sys.modules["tf_keras.src.datasets.fashion_mnist"].__loader__).__name__
        """,
        tmp_path,
    )
    assert told == {
        "threads": 0,
        "line": LINE,
        "form": FORM,
        "same": True,
        "doc": True,
        "surplus": "too many positional arguments",
        "early": False,
        "legacy": LINE,
        "equal": True,
        "loader": "SourceFileLoader",
    }


def test_legacy_keras_as_tf_keras_gets_it_too_and_damage_is_refused(tmp_path: Path, learner: Learn) -> None:
    told = learner(
        """
        told["line"], result = output(tf.keras.datasets.fashion_mnist.load_data)
        told["form"] = form(result)
        folder = cache / "fashion_mnist"
        folder.mkdir()
        (folder / "train-images-idx3-ubyte.gz").write_bytes(b"half")
        try:
            tf.keras.datasets.fashion_mnist.load_data()
        except Exception as e:
            told["refusal"] = [type(e).__name__, str(e)]
        """,
        tmp_path,
        keras=2,
    )
    assert told["threads"] == 0
    assert told["line"] == LINE
    assert told["form"] == FORM
    assert told["refusal"] == [
        "DamagedDataSet",
        "Fashion-MNIST: the file fashion_mnist/train-images-idx3-ubyte.gz in this node's cache was rejected: it has 4 "
        "bytes instead of 26,421,880. It was not used. "
        "The operator can replace it with: lockstep datasets fetch fashion_mnist",
    ]


@pytest.mark.parametrize("prepared", [True, False])
def test_the_real_data_set_is_loaded_where_it_is(tmp_path: Path, tiny: Tiny, prepared: bool) -> None:
    tiny.put(tmp_path / "fashion_mnist")
    if prepared:
        prepare(tmp_path, {"fashion_mnist": tiny.data_set})
    arrays, real = load(Cache(tmp_path), tiny.data_set)
    assert real
    for name, array in tiny.arrays.items():
        assert np.array_equal(arrays[name], array)


@pytest.mark.parametrize("prepared", [True, False])
def test_a_file_damaged_after_preparation_is_refused_and_no_stand_in_takes_its_place(
    tmp_path: Path, tiny: Tiny, prepared: bool
) -> None:
    path = tiny.put(tmp_path / "fashion_mnist") / "x_test.gz"
    if prepared:
        prepare(tmp_path, {"fashion_mnist": tiny.data_set})
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DamagedDataSet, match=r"x_test\.gz .* it has 100 bytes instead of"):
        load(Cache(tmp_path), tiny.data_set)


def test_a_notice_says_that_the_stand_in_is_not_the_real_data(tmp_path: Path, tiny: Tiny) -> None:
    assert load(Cache(tmp_path), tiny.data_set)[1] is False


CIFAR = """
    told["lines"] = []
    def load(module, *arguments, **named):
        line, result = output(lambda: module.load_data(*arguments, **named))
        told["lines"].append(line)
        return result
    keras = tf.keras
    told["mnist"] = form(load(keras.datasets.mnist))
    (x, y), (tx, ty) = load(keras.datasets.cifar10)
    told["cifar10"] = form([(x, y), (tx, ty)])
    fine, coarse = load(keras.datasets.cifar100), load(keras.datasets.cifar100, label_mode="coarse")
    told["cifar100"] = form(fine)
    told["labels"] = [int(fine[0][1].max()), int(coarse[0][1].max()), str(coarse[1][1].dtype)]
    try:
        keras.datasets.cifar100.load_data("middling")
    except ValueError as e:
        told["refusal"] = str(e)
    keras.backend.set_image_data_format("channels_first")
    told["first"] = form(load(keras.datasets.cifar10))
    keras.backend.set_image_data_format("channels_last")

    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.layers.Input((32, 32, 3)), keras.layers.Rescaling(1 / 255),
        keras.layers.Conv2D(12, 5, strides=2, activation="relu"),
        keras.layers.Conv2D(24, 3, strides=2, activation="relu"),
        keras.layers.GlobalMaxPooling2D(), keras.layers.Dense(10),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    model.fit(x[:8000], y[:8000], batch_size=64, epochs=2, verbose=0)
    told["accuracy"] = model.evaluate(tx[:1000], ty[:1000], verbose=0)[1]
"""


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache with prepared stand-ins: 400 MB, removed at the end."""
    cache = tmp_path_factory.mktemp("cache")
    assert all(one.prepared for one in prepare(cache, {n: read_catalog()[n] for n in ("mnist", "cifar10", "cifar100")}))
    yield cache
    shutil.rmtree(cache)


@pytest.mark.parametrize("keras", [3, pytest.param(2, marks=pytest.mark.long)])
def test_coloured_images_and_digits_have_the_form_of_keras_and_can_be_learned(
    ready: Path, learner: Learn, keras: int
) -> None:
    told = learner(CIFAR, ready, keras)
    assert told["mnist"] == FORM
    images = (
        [[[50000, 32, 32, 3], "uint8"], [[50000, 1], "uint8"]],
        [[[10000, 32, 32, 3], "uint8"], [[10000, 1], "uint8"]],
    )
    assert told["cifar10"] == list(images)
    assert [part[0] for part in told["cifar100"]] == [part[0] for part in images]
    assert [part[1] for part in told["cifar100"]] == [[[50000, 1], "int64"], [[10000, 1], "int64"]]
    assert told["labels"] == [99, 19, "int64"]
    assert told["refusal"] == "label_mode must be 'fine' or 'coarse', not 'middling'."
    assert told["first"][0][0] == [[50000, 3, 32, 32], "uint8"]
    titles = ["MNIST", "CIFAR-10", "CIFAR-100", "CIFAR-100", "CIFAR-10"]
    assert [line.partition(" is not")[0] for line in told["lines"]] == [f"Stand-in data: {title}" for title in titles]
    assert "so these are made-up patterns of the same size and type" in told["lines"][0]
    assert told["accuracy"] > 0.3
