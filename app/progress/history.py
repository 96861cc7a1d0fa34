"""What the ledger holds of one learner, for their own page: where the XP came from, when they learned, what ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.progress.models import Entry

ON_A_PAGE = 20


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Awards with XP, the newest first."""

    entries: Sequence[Entry]
    number: int
    """From 1."""
    more: bool
    """Whether there are older ones."""


async def history(session: AsyncSession, learner_id: str | None, number: int) -> HistoryPage:
    """One page of what brought XP."""
    mine = select(Entry).where(Entry.learner_id == learner_id, Entry.xp > 0)
    newest_first = mine.order_by(Entry.at.desc(), Entry.kind, Entry.subject)
    found = await session.scalars(newest_first.offset((number - 1) * ON_A_PAGE).limit(ON_A_PAGE + 1))
    entries = found.all()
    return HistoryPage(entries[:ON_A_PAGE], number, len(entries) > ON_A_PAGE)


async def active_days(session: AsyncSession, learner_id: str | None, since: date) -> set[date]:
    """The days on which the learner was active, in their own time zone."""
    mine = (Entry.learner_id == learner_id, Entry.kind == "day", Entry.subject >= since.isoformat())
    return {date.fromisoformat(day) for day in await session.scalars(select(Entry.subject).where(*mine))}


async def cells_run(session: AsyncSession, learner_id: str | None, names: Sequence[str]) -> set[str]:
    """Those of the cells, ``course/lesson#cell`` each, that the learner has run."""
    mine = (Entry.learner_id == learner_id, Entry.kind == "cell", Entry.subject.in_(names))
    return set(await session.scalars(select(Entry.subject).where(*mine)))


async def public_account(session: AsyncSession, handle: str) -> Account | None:
    """The account of that handle, if it wants a public profile."""
    if "\0" in handle:
        return None  # PostgreSQL takes no such text, not even to look for it
    shown = (Account.handle == handle, Account.public_profile, Account.disabled_at.is_(None))
    return await session.scalar(select(Account).where(*shown))
