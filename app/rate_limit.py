"""Rate limits: repeated attempts must wait longer each time.

Attempts are counted in the database, under a key of the action and the account, browser, learner or network that
attempts it. Each feature defines its own policies. ``retry_after`` is for features that store timestamps themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import String, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime, advisory_lock, dialect_insert, now
from app.errors import TooManyRequests
from app.i18n import N_, duration
from app.security_log import SecurityEvent, record

_RESET_AFTER_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class RateLimitPolicy:
    """How often something may be attempted: ``free_attempts`` at once, then after a delay that doubles each time."""

    free_attempts: int
    initial_delay_s: float = 2.0
    max_delay_s: float = 900.0

    def remaining_delay_s(self, count: int, since_s: float) -> float:
        """Seconds left to wait after ``count`` attempts, the last of them ``since_s`` seconds ago. Pure."""
        if count < self.free_attempts or since_s >= _RESET_AFTER_S:
            return 0.0
        doublings = min(count - self.free_attempts, 30)
        return max(0.0, min(self.max_delay_s, self.initial_delay_s * 2.0**doublings) - since_s)


@dataclass(frozen=True, slots=True)
class WindowLimit:
    """At most ``max_count`` within any ``window``."""

    max_count: int
    window: timedelta


class RateLimitCounter(Base):
    """Recent attempts by one account, browser, learner or network."""

    __tablename__ = "rate_limit_counters"

    key: Mapped[str] = mapped_column(String(120), primary_key=True)
    """``sign-in account HASH``, ``sign-in address 192.0.2.0/24``, …"""
    count: Mapped[int]
    last_at: Mapped[datetime] = mapped_column(UtcDateTime)


class TooManyAttempts(TooManyRequests):
    """``wait`` is a duration in words."""

    message = N_("Too many attempts. Wait {wait}, then try again.")

    def __init__(self, delay_s: float) -> None:
        super().__init__(wait=duration(timedelta(seconds=delay_s)))
        self.delay_s = math.ceil(delay_s)
        self.retry_after_s = self.delay_s


def network_limit_key(action: str, network: str | None) -> str | None:
    """The key for attempts from one network; None if the network is not counted. Pure."""
    return f"{action} address {network}" if network else None


async def count_attempt(session: AsyncSession, key: str | None, policy: RateLimitPolicy) -> None:
    """Count an attempt. If it comes too soon, raises TooManyAttempts and counts nothing."""
    if key is None:
        return
    await advisory_lock(session, f"attempts {key}")
    moment = now()
    row = dialect_insert(session, RateLimitCounter).values(key=key, count=0, last_at=moment)
    await session.execute(row.on_conflict_do_nothing())  # write first: that locks SQLite
    attempts = (
        await session.execute(select(RateLimitCounter).where(RateLimitCounter.key == key).with_for_update())
    ).scalar_one()
    since_s = (moment - attempts.last_at).total_seconds()
    if attempts.count and (delay_s := policy.remaining_delay_s(attempts.count, since_s)) > 0:
        record(SecurityEvent.throttled, reason=key.rpartition(" ")[0])  # the rest is a hash, a network, or a learner
        raise TooManyAttempts(delay_s)
    attempts.count = 1 if since_s >= _RESET_AFTER_S else attempts.count + 1
    attempts.last_at = moment
    await session.flush()


async def reset_attempts(session: AsyncSession, key: str) -> None:
    """Reset the count after a successful attempt."""
    await session.execute(delete(RateLimitCounter).where(RateLimitCounter.key == key))


async def refund_attempt(session: AsyncSession, key: str | None) -> None:
    """Subtract an attempt that was not a wrong guess, so that a whole class can sign in from one network."""
    mine = update(RateLimitCounter).where(RateLimitCounter.key == key, RateLimitCounter.count > 0)
    await session.execute(mine.values(count=RateLimitCounter.count - 1).execution_options(synchronize_session=False))


async def delete_expired_counters(session: AsyncSession) -> None:
    """Delete the counters that have been reset by time."""
    await session.execute(
        delete(RateLimitCounter).where(RateLimitCounter.last_at < now() - timedelta(seconds=_RESET_AFTER_S))
    )


def retry_after(timestamps: Sequence[datetime], at: datetime, limits: Sequence[WindowLimit]) -> timedelta:
    """How long to wait until another is allowed; ``timestamps`` has the latest first. Zero if allowed now. Pure."""
    waits = [timestamps[each.max_count - 1] + each.window - at for each in limits if len(timestamps) >= each.max_count]
    return max([timedelta(0), *waits])
