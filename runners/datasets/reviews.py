"""Made-up film reviews: the stand-in for IMDB, as ranks of words and a word index.

Words come as often as their rank says. Some praise and some blame; a review leans to one side, and how far differs, so
that counting words tells most reviews apart and no rule tells all. The first two hundred words are English, so that a
decoded review can be read; the others are made of syllables.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from runners.datasets.catalog import Arrays, DataSet
from runners.datasets.rolls import Rolls

_SEED = 20110619
VOCABULARY = 88_584
"""Words of the index, as many as the original's."""
_LEAST, _SPREAD = 40, 380
"""Words in the shortest review, and how many more the longest has."""
_FLAT, _BEND = 2, 2000
"""The word of rank r comes with a weight of 1 / ((r + _FLAT) * (r + _BEND)): the 100 first are half of a review."""

_COMMON = (
    "the and a of to is in it i this that was as for with movie but film on not you are his have be one he all at by "
    "an they who so from like her or just about out if has what some there very more when she even my no up would "
    "which only story their see can had we were me than much well been time get will do also people into other how "
    "because first him most scene scenes actors character characters plot end ending director music role part way "
    "after then too where did camera hour minutes script screen cast show series action drama comedy horror "
    "thriller romance"
)
_PRAISE = (
    "good great best love excellent wonderful beautiful perfect amazing brilliant superb enjoyed favorite fun "
    "fantastic touching loved masterpiece charming delightful clever moving gripping funny strong honest rich warm "
    "bright fresh"
)
_BLAME = (
    "bad worst boring awful poor terrible waste stupid dull horrible worse lame ridiculous annoying disappointing "
    "fails mess predictable pointless weak flat slow silly ugly cheap empty tired painful hated cold"
)
_SYLLABLES = tuple(a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "al", "en", "or"))


def words() -> list[str]:
    """The vocabulary by rank, the most common word first: VOCABULARY words, none twice."""
    known = _COMMON.split()
    known += itertools.chain.from_iterable(zip(_PRAISE.split(), _BLAME.split(), strict=True))
    made = ("".join(parts) for length in (2, 3) for parts in itertools.product(_SYLLABLES, repeat=length))
    taken = set(known)
    rest = (word for word in made if word not in taken)
    return [*known, *itertools.islice(rest, VOCABULARY - len(known))]


def word_index() -> dict[str, int]:
    """Each word's rank, from 1: what ``imdb.get_word_index()`` returns."""
    return {word: rank for rank, word in enumerate(words(), 1)}


def write(data_set: DataSet) -> Arrays:
    """``x_*``: lists of ranks from 1, as objects; ``y_*``: 1 for praise, 0 for blame, int64."""
    rolls = Rolls(_SEED)
    arrays: Arrays = {}
    for part in ("train", "test"):
        count = data_set.arrays[f"x_{part}"].shape[0]
        labels = (np.arange(count) % 2)[rolls.order(count)].astype(np.int64)
        arrays[f"x_{part}"], arrays[f"y_{part}"] = _reviews(rolls, labels), labels
    return arrays


def _reviews(rolls: Rolls, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    count = len(labels)
    share = rolls.unit(count)
    lengths = _LEAST + (share * share * share * np.float32(_SPREAD)).astype(np.int64)
    total = int(lengths.sum())
    ranks = _common_words(rolls, total)
    feeling = np.repeat(rolls.between(0.04, 0.16, count)[:, 0], lengths) > rolls.unit(total)
    leaning = np.repeat(rolls.between(0.6, 1.0, count)[:, 0], lengths) > rolls.unit(total)
    praises = (np.repeat(labels, lengths) == 1) == leaning
    felt = len(_COMMON.split()) + 1 + 2 * rolls.below(len(_PRAISE.split()), total) + ~praises
    ranks = np.where(feeling, felt, ranks)
    ends = np.cumsum(lengths)
    reviews = np.empty(count, object)
    reviews[:] = [ranks[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)]
    return reviews


def _common_words(rolls: Rolls, count: int) -> npt.NDArray[np.int64]:
    """Ranks by their weights. Whole numbers only, so that they are the same everywhere."""
    ranks = np.arange(1, VOCABULARY + 1)
    edges = np.cumsum((1 << 50) // ((ranks + _FLAT) * (ranks + _BEND)))
    return np.searchsorted(edges, rolls.below(int(edges[-1]), count), side="right") + 1
