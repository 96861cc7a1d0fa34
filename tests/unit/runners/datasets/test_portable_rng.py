"""The random numbers are the same everywhere and leave no trace."""

from __future__ import annotations

import numpy as np

from runners.datasets.portable_rng import PortableRandom

PINNED = [0.5118215680122375, 0.9504636526107788, 0.14415955543518066]
BELOW = [8, 9, 4, 8, 0]
BYTES = [248, 194, 190, 207, 147, 26, 237, 21, 245, 211, 239]


def test_the_first_numbers_are_pinned() -> None:
    rolls = PortableRandom(1)
    assert [float(x) for x in rolls.unit(3)] == PINNED
    assert rolls.below(10, 5).tolist() == BELOW


def test_numbers_lie_in_their_range_and_fill_it() -> None:
    numbers = PortableRandom(2).between(-3.0, 5.0, 10_000)
    assert numbers.shape == (10_000, 1)
    assert numbers.dtype == np.float32
    assert -3.0 <= numbers.min() < -2.99
    assert 4.99 < numbers.max() < 5.0


def test_bytes_are_pinned_and_of_any_number() -> None:
    assert PortableRandom(3).bytes(11).tolist() == BYTES


def test_an_order_holds_every_number_once() -> None:
    assert sorted(PortableRandom(4).order(500).tolist()) == list(range(500))


def test_numpys_global_state_is_neither_read_nor_moved() -> None:
    np.random.seed(7)
    first = PortableRandom(5).unit(4)
    after = np.random.random()
    np.random.seed(7)
    assert after == np.random.random()
    np.random.seed(8)
    assert np.array_equal(first, PortableRandom(5).unit(4))
