"""Who may keep a place on a full node, and who gets the next one. Pure.

A session in which nothing runs ends after ``idle_s``. While others wait it ends sooner: after ``give_way_s``, or after
``unused_s`` if it never ran anything and has nothing to lose. Who has something to lose is told ``notice_s`` before.

A learner may keep a session: its idle time begins anew. That holds while others wait too, but not for ever: without a
run for ``idle_s`` it gives way however often it was kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """All in seconds."""

    idle_s: float
    give_way_s: float
    unused_s: float = 5.0
    notice_s: float = 40.0
    """Long enough for a page that asks every 20 s, and for the 20 s in which a learner can answer."""


@dataclass(frozen=True, slots=True)
class Sitter:
    """A session in which nothing runs."""

    name: str
    idle_s: float
    """Since its last run ended, or it was kept."""
    workless_s: float
    """Since its last run ended, kept or not."""
    used: bool
    """Whether it ever ran anything."""
    told_s: float | None = None
    """Since it was told to give way; None if it was not."""


@dataclass(frozen=True, slots=True)
class Leave:
    """When a session ends if nothing happens."""

    in_s: float
    gives_way: bool = False
    """It ends for others who wait."""
    can_be_kept: bool = True
    """Whether keeping it would put that off."""


@dataclass(frozen=True, slots=True)
class Waiter:
    """A session in the queue; the order of arrival is the order in which they are given."""

    name: str
    owner: str
    has_run: bool
    """Somebody pressed Run and waits; the others were only asked for ahead of time."""


def leaving(sitters: Sequence[Sitter], waiting: int, rules: Rules) -> dict[str, Leave]:
    """When each of ``sitters`` ends, while ``waiting`` others wait for a place."""
    leaves = {s.name: Leave(max(0.0, rules.idle_s - s.idle_s)) for s in sitters}
    for sitter in sorted(sitters, key=lambda s: _patience_s(s, rules))[:waiting]:
        in_s = _patience_s(sitter, rules)
        if sitter.used:
            in_s = max(in_s, rules.notice_s - (sitter.told_s or 0.0))
        if in_s < leaves[sitter.name].in_s:
            kept_out = rules.idle_s - sitter.workless_s <= rules.give_way_s - sitter.idle_s
            leaves[sitter.name] = Leave(max(0.0, in_s), gives_way=True, can_be_kept=sitter.used and not kept_out)
    return leaves


def _patience_s(sitter: Sitter, rules: Rules) -> float:
    """How much longer a session may sit while others wait; negative if it has sat too long already."""
    if not sitter.used:
        return rules.unused_s - sitter.workless_s
    return min(rules.give_way_s - sitter.idle_s, rules.idle_s - sitter.workless_s)


def in_turn(waiters: Sequence[Waiter], held: Mapping[str, int]) -> list[str]:
    """The queue as it is served: who pressed Run first, then whose owner has fewest sessions, then who came first.

    Args:
        waiters: in order of arrival.
        held: how many places each owner has now.
    """
    taken = Counter(held)
    ranks: dict[str, tuple[bool, int]] = {}
    for waiter in sorted(waiters, key=lambda w: not w.has_run):
        ranks[waiter.name] = (not waiter.has_run, taken[waiter.owner])
        taken[waiter.owner] += 1
    return sorted((w.name for w in waiters), key=lambda name: ranks[name])
