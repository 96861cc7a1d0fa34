"""Made-up house prices: the stand-ins for Boston and California Housing.

Prices follow the columns by a plain rule, with a bend and with noise: a straight line explains most, a network more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, DataSet
from runners.datasets.rolls import Rolls

Column = npt.NDArray[np.float64]


class _Draws:
    """Columns of ``count`` numbers, float64."""

    def __init__(self, seed: int, count: int) -> None:
        self._rolls = Rolls(seed)
        self._count = count

    def even(self, low: float, high: float) -> Column:
        """Evenly spread in [low, high)."""
        return low + (high - low) * self._rolls.unit(self._count).astype(np.float64)

    def bell(self, middle: float, spread: float) -> Column:
        """Heaped around ``middle``: the mean of four even ones, all within ``2 * spread``."""
        return middle + spread * (self.even(-1, 1) + self.even(-1, 1) + self.even(-1, 1) + self.even(-1, 1)) / 2

    def one_in(self, count: int) -> Column:
        """Ones and zeros."""
        return (self.even(0, 1) * count < 1).astype(np.float64)


def boston(data_set: DataSet) -> Arrays:
    """``x`` (506, 13): crime, large lots, industry, at the river, nitric oxides, rooms, age, distance, roads, tax,
    pupils per teacher, a column without meaning, poorer people in percent; ``y``: price in 1,000 dollars.

    The original's twelfth column is made of the share of Black residents. Here it is noise and moves no price.
    """
    spec = data_set.arrays["x"]
    draws = _Draws(19780101, spec.shape[0])
    city = draws.even(0, 1)
    rooms = np.clip(draws.bell(6.3, 1.4), 3.5, 8.8)
    poorer = np.clip(12 + 16 * (city - 0.5) + draws.bell(0, 7), 1.7, 38)
    oxides = 0.38 + 0.4 * city + draws.bell(0, 0.04)
    distance = np.clip(10 - 8.5 * city + draws.bell(0, 1.2), 1.1, 12)
    river, pupils = draws.one_in(14), np.clip(draws.bell(18.4, 2.2), 12.6, 22)
    crime = np.clip((city * city * city * 12) + draws.even(0, 0.6), 0.006, 89)
    lots = np.clip((0.5 - city) * 120 + draws.bell(0, 15), 0, 100)
    industry, age = 2 + 18 * city + draws.even(0, 4), np.clip(30 + 65 * city + draws.bell(0, 20), 3, 100)
    roads = np.floor(1 + 7 * draws.even(0, 1)) + 16 * (city > 0.74)
    tax, without = 190 + 20 * roads + draws.even(0, 60), draws.even(350, 397)
    price = 20 + 5.5 * (rooms - 6.3) + 1.6 * (rooms - 6.3) ** 2 - 0.55 * (poorer - 12) + 3 * river
    price += -14 * (oxides - 0.55) - 0.7 * (pupils - 18.4) - 0.2 * crime + draws.bell(1.5, 5)
    columns = (crime, lots, industry, river, oxides, rooms, age, distance, roads, tax, pupils, without, poorer)
    return _arrays(data_set, columns, np.clip(price, 5, 50))


def california(data_set: DataSet) -> Arrays:
    """``x`` (20640, 8): median income in 10,000 dollars, age of houses, rooms and bedrooms per household, people,
    people per household, latitude, longitude, as Keras documents them; ``y``: price in dollars.
    """
    spec = data_set.arrays["x"]
    draws = _Draws(19970501, spec.shape[0])
    along, luck = draws.even(0, 1), draws.even(0, 1)
    income = np.clip(draws.bell(3.4, 1.6) + 4.4 * luck * luck * luck * luck, 0.5, 15)
    inland = draws.even(0, 1) * draws.even(0, 1)
    age, people = (
        np.floor(draws.even(1, 53)),
        np.floor(100 + 2600 * draws.even(0, 1) * draws.even(0, 1) + draws.even(0, 400)),
    )
    rooms = 3.4 + 0.5 * income + draws.bell(0, 0.8)
    bedrooms, together = np.clip(draws.bell(1.07, 0.08), 0.5, 3), np.clip(draws.bell(2.95, 0.7), 1.2, 6)
    latitude, longitude = 32.6 + 9 * along, -117.2 - 6.6 * along + 4 * inland
    price = 40_000 + 46_000 * income + 2_600 * (income - 4) ** 2 - 110_000 * inland + 550 * (age - 28)
    price += -26_000 * (together - 3) + draws.bell(0, 60_000)
    columns = (income, age, rooms, bedrooms, people, together, latitude, longitude)
    return _arrays(data_set, columns, np.floor(np.clip(price, 60_000, 500_001) / 100) * 100)


def _arrays(data_set: DataSet, columns: tuple[Column, ...], price: Column) -> Arrays:
    specs = data_set.arrays
    return {"x": np.stack(columns, axis=1).astype(specs["x"].dtype), "y": price.astype(specs["y"].dtype)}
