"""How fast one account may write. A policy and a function of it, both pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Rule:
    """At most ``most`` comments within any ``within``."""

    most: int
    within: timedelta


NEWCOMER = timedelta(days=1)
"""For so long an account counts as new."""
RULES = (Rule(6, timedelta(minutes=1)), Rule(60, timedelta(hours=1)), Rule(200, timedelta(days=1)))
RULES_FOR_NEWCOMERS = (Rule(4, timedelta(minutes=1)), Rule(15, timedelta(hours=1)), Rule(40, timedelta(days=1)))
MOST_KNOWN = max(rule.most for rule in (*RULES, *RULES_FOR_NEWCOMERS))
"""So many of the latest comments decide."""


def rules_for(age: timedelta) -> tuple[Rule, ...]:
    """The rules for an account of that age."""
    return RULES_FOR_NEWCOMERS if age < NEWCOMER else RULES


def wait(written: Sequence[datetime], at: datetime, rules: Sequence[Rule]) -> timedelta:
    """How long to wait until one more may be written; ``written`` has the latest first. Zero if it may be now."""
    waits = [written[rule.most - 1] + rule.within - at for rule in rules if len(written) >= rule.most]
    return max([timedelta(0), *waits])
