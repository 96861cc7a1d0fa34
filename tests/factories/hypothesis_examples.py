"""How many examples hypothesis makes up, and examples drawn beforehand for what has an event loop of its own.

The main tier makes up a few, the same each time, so that a failure is a fault of the change. ``tests/long/fuzz`` sets
``LOCKSTEP_TEST_EXAMPLES`` to try that many times as many, drawn at random.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

Example = TypeVar("Example")
VARIABLE = "LOCKSTEP_TEST_EXAMPLES"
_FACTOR = int(os.environ.get(VARIABLE, "1"))


def example_count(number: int) -> settings:
    """Settings of a test that tries this many examples in the main tier. A busy machine is no failure: no deadline."""
    allowed = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(
        max_examples=number * _FACTOR,
        derandomize=_FACTOR == 1,
        deadline=None,
        suppress_health_check=allowed,
        database=None,
    )


def fixed_examples(strategy: SearchStrategy[Example], number: int) -> list[Example]:
    """That many examples at most, in the main tier; the same each time there."""
    found: list[Example] = []

    @settings(example_count(number), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example: Example) -> None:
        found.append(example)

    draw()
    return found
