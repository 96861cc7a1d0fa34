"""Claims of lessons that were wrong once: each is now next to a cell whose output is compared with it.

Here it is only held that the cell states what it prints. ``test_cells`` runs every cell and compares.
"""

from __future__ import annotations

import pytest

from tests.factories.shipped_lessons import shipped_catalog

COURSE = "distributed-tensorflow"
CATALOG = shipped_catalog()


@pytest.mark.parametrize(
    ("lesson", "cell"),
    [
        ("mirrored-strategy", "ring"),
        ("mirrored-strategy", "default"),
        ("mirrored-strategy", "batch-statistics"),
        ("mirrored-strategy", "clipping"),
        ("mirrored-strategy", "algorithms"),
        ("mirrored-strategy", "odd"),
        ("one-place-one-device", "aggregation"),
        ("one-place-one-device", "lookup"),
        ("one-place-one-device", "hidden-mistakes"),
        ("mixed-precision", "underflow"),
        ("mixed-precision", "agree"),
        ("mixed-precision", "agree-cost"),
        ("fitting-into-memory", "crossings"),
        ("scaling-the-loss", "adam-hides"),
        ("scaling-the-loss", "average-loss"),
        ("cifar-10-practice", "efficiency"),
        ("multi-worker", "first-value"),
        ("multi-worker", "fit-arrays"),
        ("custom-training-loop", "inside"),
        ("custom-training-loop", "reads"),
        ("gradient-by-hand", "tf32"),
        ("gradient-by-hand", "four-workers"),
    ],
)
def test_a_claim_that_was_wrong_is_compared_with_what_a_cell_prints(lesson: str, cell: str) -> None:
    for language in CATALOG.lesson(COURSE, lesson, "en").languages:
        found = CATALOG.lesson(COURSE, lesson, language).cell(cell)

        assert found is not None
        assert found.expect


@pytest.mark.parametrize(
    ("lesson", "cell", "words"),
    [
        ("gradient-by-hand", "four-workers", "generator = np.random.default_rng("),
        ("scaling-the-loss", "update", ".get_concrete_function()"),
        ("custom-training-loop", "softmax-twice", "warnings.formatwarning"),
        ("distribution-strategies", "train-everywhere", "variables are on all"),
    ],
)
def test_a_cell_that_misled_beginners_keeps_what_mends_it(lesson: str, cell: str, words: str) -> None:
    found = CATALOG.lesson(COURSE, lesson, "en").cell(cell)

    assert found is not None
    assert words in found.code
