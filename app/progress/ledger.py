"""The ledger: stores learning events and their XP, each once, in the transaction that observed them.

Awards to one learner are serialized (by a lock in PostgreSQL, by the single writer in SQLite). So two events that
together earn an achievement always see each other, and timestamps grow with every commit. The primary key of
``LedgerEntry`` prevents a second award in any case. Locks are taken in this order: a run, learners by ID, rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, false, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, MergedVisitor
from app.db import advisory_lock, dialect_insert, now
from app.notifications.models import NotificationKind
from app.notifications.service import notify
from app.progress import lesson_progress, timezones
from app.progress.events import LearningEvent
from app.progress.models import LedgerEntry, LessonProgress
from app.progress.requirements import LearnerEvents, Requirements, derive_events

_CLOCK_TICK = timedelta(microseconds=1)
_INSERT_BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class AwardResult:
    learner_id: str
    """The current owner: the account's learner, if the visitor was merged in the meantime."""
    entries: tuple[LearningEvent, ...]
    """New entries of the ledger, including those that followed from the events: lessons, modules, achievements."""
    xp: int
    """The learner's total."""

    def of(self, kind: str) -> tuple[str, ...]:
        """The subjects of the new entries of one kind."""
        return tuple(fact.subject for fact in self.entries if fact.kind == kind)


class Ledger:
    """Awards XP under the current requirements. One per process, ``ProgressService.ledger``."""

    def __init__(self, terms: Callable[[], Requirements]) -> None:
        self._terms = terms

    async def award(self, session: AsyncSession, learner_id: str, facts: Iterable[LearningEvent]) -> AwardResult:
        """Store the new ones of ``facts`` and the events that follow from them. The caller commits."""
        return await self.enter(session, await lock_current_learner(session, learner_id), facts)

    async def enter(self, session: AsyncSession, learner_id: str, facts: Iterable[LearningEvent]) -> AwardResult:
        """``award`` for a learner that this transaction has locked (``lock_current_learner``)."""
        known = await load_learner_events(session, learner_id)
        at = _next_timestamp(known)
        new = [fact for fact in sorted(set(facts)) if known.add(fact, at)]
        return await self._enter(session, learner_id, known, [(fact, at) for fact in new], at)

    async def merge(self, session: AsyncSession, from_learner: str, to_learner: str) -> Mapping[str, int]:
        """Merge one learner's progress into another's. Nothing is lost or counted twice; the earliest times are kept.

        The caller commits, and has moved the runs before (storing a run's end locks the run, then the learner).

        Returns:
            what was added: ``xp``, ``cells``, ``lessons``, ``achievements``.
        """
        if from_learner == to_learner:
            return {}
        for learner in sorted((from_learner, to_learner)):
            await lock_learner(session, learner)
        coming = list(await session.execute(_ENTRIES.where(LedgerEntry.learner_id == from_learner)))
        known = await load_learner_events(session, to_learner)
        before, at = known.xp, _next_timestamp(known)
        new, earlier = [], []
        for kind, subject, xp, moment in coming:
            was = known.by_kind[kind].get(subject)
            if known.add(fact := LearningEvent(kind, subject, xp), moment):
                new.append((fact, moment))
            elif was is not None and moment < was:
                earlier.append((fact, moment))
        for fact, moment in sorted(earlier):
            of_fact = (
                LedgerEntry.learner_id == to_learner,
                LedgerEntry.kind == fact.kind,
                LedgerEntry.subject == fact.subject,
            )
            await session.execute(update(LedgerEntry).where(*of_fact).values(occurred_at=moment))
        await session.execute(delete(LedgerEntry).where(LedgerEntry.learner_id == from_learner))
        await timezones.merge_timezone(session, from_learner, to_learner)
        await lesson_progress.merge_lessons(session, from_learner, to_learner)
        awarded = await self._enter(session, to_learner, known, new, at)
        return {
            "xp": awarded.xp - before,
            "cells": len(awarded.of("cell")),
            "lessons": len(awarded.of("lesson")),
            "achievements": len(awarded.of("achievement")),
        }

    async def _enter(
        self,
        session: AsyncSession,
        learner_id: str,
        known: LearnerEvents,
        new: Sequence[tuple[LearningEvent, datetime]],
        at: datetime,
    ) -> AwardResult:
        terms = self._terms()
        derived = derive_events(known, terms, at)
        revisited = await lesson_progress.update_completions(session, learner_id, known, terms)
        if more := [fact for fact in revisited if known.add(fact, at)]:
            derived += more + derive_events(known, terms, at)
        rows = [(fact, moment) for fact, moment in new] + [(fact, at) for fact in derived]
        entered = await _insert_entries(session, learner_id, rows)
        await _notify_achievements(session, learner_id, set(derived).intersection(entered))
        return AwardResult(learner_id, entered, known.xp)


_ENTRIES = select(LedgerEntry.kind, LedgerEntry.subject, LedgerEntry.xp, LedgerEntry.occurred_at)


async def lock_current_learner(session: AsyncSession, learner_id: str) -> str:
    """Lock a learner until the transaction ends. Returns the current ID.

    That is the account's ID if the visitor was merged into an account during the request.
    """
    while True:
        await lock_learner(session, learner_id)
        account = select(Account.learner_id).join(MergedVisitor, MergedVisitor.account_id == Account.id)
        heir = await session.scalar(account.where(MergedVisitor.visitor_id == learner_id))
        if heir is None or heir == learner_id:
            return learner_id
        learner_id = heir


async def load_learner_events(session: AsyncSession, learner_id: str | None) -> LearnerEvents:
    """All events of a learner; empty for None."""
    known = LearnerEvents()
    if learner_id is not None:
        for kind, subject, xp, at in await session.execute(_ENTRIES.where(LedgerEntry.learner_id == learner_id)):
            known.add(LearningEvent(kind, subject, xp), at)
    return known


async def lock_learner(session: AsyncSession, learner_id: str) -> None:
    """Lock the learner's ledger until the transaction ends. Lock several learners in the order of their IDs."""
    await advisory_lock(session, f"progress of {learner_id}")
    if session.get_bind().dialect.name == "sqlite":  # an update takes its write lock, even if it matches no row
        await session.execute(update(LessonProgress).where(false()).values(anchor=""))


async def _insert_entries(
    session: AsyncSession, learner_id: str, rows: Sequence[tuple[LearningEvent, datetime]]
) -> tuple[LearningEvent, ...]:
    entered: list[LearningEvent] = []
    values: list[dict[str, Any]] = [
        {"learner_id": learner_id, "kind": fact.kind, "subject": fact.subject, "xp": fact.xp, "occurred_at": at}
        for fact, at in rows
    ]
    for start in range(0, len(values), _INSERT_BATCH_SIZE):
        new = (
            dialect_insert(session, LedgerEntry)
            .values(values[start : start + _INSERT_BATCH_SIZE])
            .on_conflict_do_nothing()
        )
        inserted = await session.execute(new.returning(LedgerEntry.kind, LedgerEntry.subject, LedgerEntry.xp))
        entered += [LearningEvent(*row) for row in inserted]
    return tuple(entered)


async def _notify_achievements(session: AsyncSession, learner_id: str, new: Set[LearningEvent]) -> None:
    """Notify the learner's account, if any, of new achievements."""
    if achievements := sorted(fact.subject for fact in new if fact.kind == "achievement"):
        told = (await session.scalars(select(Account.id).where(Account.learner_id == learner_id))).all()
        for achievement in achievements:
            await notify(session, told, NotificationKind.achievement, achievement)


def _next_timestamp(known: LearnerEvents) -> datetime:
    """A timestamp later than all entries, even if the clock was set back."""
    last = max((at for of_kind in known.by_kind.values() for at in of_kind.values()), default=None)
    return now() if last is None else max(now(), last + _CLOCK_TICK)
