"""Names of limits."""

from __future__ import annotations

from typing import get_args

import pytest

from app import i18n
from app.runs.limit_labels import format_limit, limit_advice, limit_label
from runners.wire.protocol import LimitName, Outcome, ReachedLimit


@pytest.mark.parametrize("name", get_args(LimitName))
@pytest.mark.parametrize("language", i18n.LANGUAGE_CODES)
def test_every_limit_has_a_name_with_its_value_and_an_advice(name: LimitName, language: str) -> None:
    limit = ReachedLimit(name=name, value=512, unit="count")
    with i18n.use_language(language):
        assert "512" in limit_label(limit)
        assert limit_advice(Outcome.error, limit)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (600, "s", "10 min"),
        (90, "s", "1 min 30 s"),
        (7200, "s", "2 h"),
        (0.5, "s", "0.5 s"),
        (8 * 1024**2, "bytes", "8 MiB"),
        (2 * 1024**3, "bytes", "2 GiB"),
        (1536 * 1024**2, "bytes", "1.5 GiB"),
        (100, "bytes", "100 bytes"),
        (4 * 1024**2, "bytes/s", "4 MiB"),
        (20_000, "count", "20,000"),
    ],
)
def test_a_value_is_written_in_units_for_people(value: float, unit: str, text: str) -> None:
    assert format_limit(ReachedLimit.model_validate({"name": "output", "value": value, "unit": unit})) == text


def test_a_rate_says_per_second() -> None:
    assert (
        limit_label(ReachedLimit(name="output_rate", value=4 * 1024**2, unit="bytes/s"))
        == "output limit 4 MiB per second"
    )


@pytest.mark.parametrize("outcome", ["timeout", "cpu", "memory", "output", "processes", "disk", "files"])
def test_an_outcome_of_a_limit_has_advice_even_if_the_limit_is_not_named(outcome: str) -> None:
    assert limit_advice(Outcome(outcome), None)


def test_what_no_limit_is_behind_has_none() -> None:
    assert limit_advice(Outcome.crash, None) == ""
