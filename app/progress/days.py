"""Which active days count: within any 23 hours two at most.

A day is one of the learner's own clock, which the learner sets. Two dates meet at midnight, but three never lie within
23 hours, the shortest that a day is where clocks are put forward, whoever stays in one place: what would be a third one
comes from zones that were changed in between, or from browsers in several of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.progress.models import Entry

_SPAN = timedelta(hours=23)
_MOST = 2


def crowded(moments: Iterable[datetime], at: datetime) -> bool:
    """Whether a day that began to count ``at`` would be a third one within 23 hours. Pure."""
    near = sorted([*(moment for moment in moments if abs(moment - at) < _SPAN), at])
    return any(last - first < _SPAN for first, last in zip(near, near[_MOST:], strict=False))


async def room(session: AsyncSession, learner_id: str, at: datetime) -> bool:
    """Whether one more day counts now, of a learner that this transaction has to itself."""
    mine = (Entry.learner_id == learner_id, Entry.kind == "day", Entry.at > at - _SPAN)
    return (await session.scalar(select(func.count()).where(*mine)) or 0) < _MOST


async def thin_out(session: AsyncSession, from_learner: str, to_learner: str) -> None:
    """Drop the days of one learner that would be too many among those of another, into whom they are to be merged."""
    there = await _days(session, to_learner)
    for subject, at in sorted((await _days(session, from_learner)).items(), key=lambda day: day[1]):
        if crowded((moment for other, moment in there.items() if other != subject), at):
            one = (Entry.learner_id == from_learner, Entry.kind == "day", Entry.subject == subject)
            await session.execute(delete(Entry).where(*one))
        else:
            there[subject] = min(at, there.get(subject, at))


async def _days(session: AsyncSession, learner_id: str) -> dict[str, datetime]:
    mine = select(Entry.subject, Entry.at).where(Entry.learner_id == learner_id, Entry.kind == "day")
    return {row.subject: row.at for row in await session.execute(mine)}
