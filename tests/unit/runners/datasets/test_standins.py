"""A stand-in has the form of the original, is the same everywhere, and can be learned."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from runners.datasets.catalog import Arrays, read_catalog
from runners.datasets.standins import OPINIONS, VOCABULARY, generate, word_index

CATALOG = read_catalog()
IMAGES = [name for name, data_set in CATALOG.items() if data_set.reader == "lockstep"]

GOLDEN = {
    "fashion_mnist": "3b65d1cb969ecc5d7f74df2baf0e1ff0",
    "mnist": "bbae03b869391619356d4090187fd270",
    "cifar10": "e91b728589456686499385f34924a202",
    "cifar100": "21ebcb2c375af7d975614d3a6f3b5d1e",
    "imdb": "32bb48d6cf371d50f81b5f1d060bc771",
    "boston_housing": "43c3a667e9c883cdd239858f2bea67c2",
    "california_housing": "723135556eaeeb817a057146ccee308c",
}
"""A change here changes the numbers learners see in lessons: raise EDITION in standins.py with it."""


@pytest.fixture(scope="module", params=IMAGES)
def images(request: pytest.FixtureRequest) -> tuple[str, Arrays]:
    return request.param, generate(CATALOG[request.param])


def _digest(arrays: Arrays) -> str:
    whole = hashlib.sha256()
    for array in arrays.values():
        whole.update(json.dumps(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return whole.hexdigest()[:32]


def _form(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}


def _catalogs_form(name: str) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (spec.shape, spec.dtype) for name, spec in CATALOG[name].arrays.items()}


def test_every_data_set_of_the_catalog_has_golden_bytes() -> None:
    assert set(GOLDEN) == set(CATALOG)


def test_images_have_the_catalogs_form_and_golden_bytes(images: tuple[str, Arrays]) -> None:
    name, arrays = images
    assert _form(arrays) == _catalogs_form(name)
    assert _digest(arrays) == GOLDEN[name]


def test_every_class_comes_equally_often_in_no_order(images: tuple[str, Arrays]) -> None:
    name, arrays = images
    labels, classes = arrays["y_train"].ravel(), len(CATALOG[name].classes)
    assert np.bincount(labels).tolist() == [len(labels) // classes] * classes
    assert np.bincount(labels[: 100 * classes]).min() > 50
    for part in ("train", "test"):
        if (coarse := arrays.get(f"y_{part}_coarse")) is not None:
            assert (coarse == arrays[f"y_{part}"] // 5).all()


def test_no_two_images_are_the_same(images: tuple[str, Arrays]) -> None:
    _, arrays = images
    for part in ("train", "test"):
        pictures = arrays[f"x_{part}"]
        assert len({row.tobytes() for row in pictures}) == len(pictures)


def test_a_linear_rule_finds_much_and_leaves_room_for_a_better_model(images: tuple[str, Arrays]) -> None:
    name, arrays = images
    chance = 1 / len(CATALOG[name].classes)
    assert 3 * chance < _share_found_by_class_means(arrays) < 0.85


def _share_found_by_class_means(arrays: Arrays) -> float:
    known, labels = arrays["x_train"][:6000].reshape(6000, -1), arrays["y_train"][:6000].ravel()
    flat = np.stack([known[labels == label].mean(0) for label in range(labels.max() + 1)]).astype(np.float32)
    images = arrays["x_test"][:2000].reshape(2000, -1).astype(np.float32)
    guesses = (images @ flat.T - (flat**2).sum(1) / 2).argmax(1)
    return float((guesses == arrays["y_test"][:2000].ravel()).mean())


def test_made_up_reviews_use_the_words_of_the_index_and_lean_to_one_side() -> None:
    arrays = generate(CATALOG["imdb"])
    assert _form(arrays) == _catalogs_form("imdb")
    assert _digest(arrays) == GOLDEN["imdb"]
    assert np.bincount(arrays["y_train"]).tolist() == [12_500, 12_500]
    index = word_index()
    assert sorted(index.values()) == list(range(1, VOCABULARY + 1))
    reviews, labels = arrays["x_test"][:2000], arrays["y_test"][:2000]
    assert all(40 <= len(review) < 420 and min(review) >= 1 and max(review) <= VOCABULARY for review in reviews)
    assert all(type(rank) is int for rank in reviews[0])
    assert all(index[f"{'good' if rank % 2 else 'bad'}{rank}"] == rank for rank in OPINIONS)
    more = np.array([sum(1 if rank % 2 else -1 for rank in review if rank in OPINIONS) for review in reviews])
    assert 0.8 < ((more > 0) == (labels == 1)).mean() < 0.95


@pytest.mark.parametrize(("name", "low", "high"), [("boston_housing", 5, 50), ("california_housing", 60_000, 500_000)])
def test_a_straight_line_explains_most_of_a_made_up_price(name: str, low: float, high: float) -> None:
    arrays = generate(CATALOG[name])
    assert _form(arrays) == _catalogs_form(name)
    assert _digest(arrays) == GOLDEN[name]
    x, y = np.c_[arrays["x"], np.ones(len(arrays["x"]))].astype(float), arrays["y"].astype(float)
    assert low <= y.min() < y.mean() < y.max() <= high
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert 0.7 < 1 - left.var() / y.var() < 0.95
