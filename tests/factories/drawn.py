"""Examples of a strategy, drawn beforehand: what is done with them may then have an event loop of its own."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

Example = TypeVar("Example")


def drawn(strategy: SearchStrategy[Example], number: int) -> list[Example]:
    """That many examples at most, the same each time."""
    found: list[Example] = []

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(example: Example) -> None:
        found.append(example)

    draw()
    return found
