"""The ledger: facts become XP, once, in the transaction of whoever saw them.

One learner's awards are made one after the other (a lock in PostgreSQL, the one writer in SQLite), so that two
facts that together make a third never miss each other; the key of ``Entry``
keeps an award from happening twice in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.progress.facts import Fact


@dataclass(frozen=True, slots=True)
class Awarded:
    """What was new."""

    learner_id: str
    """Whose it is now: the account's, where the visitor has become one meanwhile."""
    entries: tuple[Fact, ...]
    """New rows of the ledger, with what followed from the facts: lessons, modules, achievements."""
    xp_before: int
    xp: int


class Ledger:
    """Awards by the rules and lessons of the moment. One for each process, ``app.state.progress.ledger``."""

    async def award(self, session: AsyncSession, learner_id: str, facts: Iterable[Fact]) -> Awarded:
        """Enter what is new of the facts, and what follows from it by now. The caller commits."""
        raise NotImplementedError

    async def merge(self, session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
        """Bring one learner's progress into another's: nothing lost, nothing twice, the earliest moments stay.

        The caller commits, and has moved the runs before (whoever stores a run's end locks the run, then the learner).

        Returns:
            what came in: ``xp``, ``cells``, ``lessons``, ``achievements``.
        """
        raise NotImplementedError
