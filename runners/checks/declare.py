"""``@check``: which functions of a ``checks.py`` judge which exercise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runners.checks.work import Work


@dataclass(frozen=True, slots=True)
class DeclaredCheck:
    """One judged statement about an exercise. Calling it with a ``Work`` raises CheckFailed unless it holds."""

    exercise: str
    name: str
    xp: int
    hints: tuple[str, ...]
    function: Callable[[Work], None]

    def __call__(self, work: Work) -> None:
        """Judge ``work``."""
        self.function(work)


def check(
    exercise: str, name: str, *, xp: int = 0, hints: Sequence[str] = ()
) -> Callable[[Callable[[Work], None]], DeclaredCheck]:
    """Make a function the check of an exercise. Its arguments must be literals: the app reads them and runs nothing.

    Args:
        exercise: the name of the exercise's cell.
        name: the statement that is judged, as the learner reads it: "One step equals one large batch".
        xp: what passing it is worth.
        hints: shown one at a time, on request.
    """

    def declare(function: Callable[[Work], None]) -> DeclaredCheck:
        return DeclaredCheck(exercise, name, xp, tuple(hints), function)

    return declare


def checks_of(namespace: Mapping[str, object], exercise: str) -> list[DeclaredCheck]:
    """The checks of an exercise, in the order in which a module defines them."""
    declared = (value for value in namespace.values() if isinstance(value, DeclaredCheck))
    return [one for one in declared if one.exercise == exercise]
