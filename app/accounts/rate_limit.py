"""Guessing is slowed down: whoever tries the same thing again and again waits longer each time.

Tries are counted for an account and for a network address. A few are free, an address of many people has more.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import RateLimitCounter
from app.accounts.service import email_key
from app.db import advisory_lock, dialect_insert, now
from app.errors import TooManyRequests
from app.i18n import N_, ngettext

_RESET_AFTER_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class RateLimitPolicy:
    """How often something may be tried. ``free`` tries cost nothing; then the wait doubles from ``first_s``."""

    free: int
    first_s: float = 2.0
    most_s: float = 900.0

    def wait_s(self, count: int, since_s: float) -> float:
        """Seconds still to wait after ``count`` tries, the last of them ``since_s`` ago. Pure."""
        if count < self.free or since_s >= _RESET_AFTER_S:
            return 0.0
        doublings = min(count - self.free, 30)
        return max(0.0, min(self.most_s, self.first_s * 2.0**doublings) - since_s)


ATTEMPTS_PER_ACCOUNT = RateLimitPolicy(free=5)
ATTEMPTS_PER_NETWORK = RateLimitPolicy(free=40, most_s=300.0)
AUTH_CHALLENGES = RateLimitPolicy(free=500, most_s=60.0)
"""Begun from one address, as a whole school has, or for one account, and come to no good end: each is a row in SQL."""
EXPORTS_PER_ACCOUNT = RateLimitPolicy(free=10, first_s=60.0)
"""Each is a file while it is sent."""
EMAILS_PER_RECIPIENT = RateLimitPolicy(free=3, first_s=3600.0, most_s=3600.0)
"""To one address, whoever asks for them: three in an hour."""
EMAILS_PER_NETWORK = RateLimitPolicy(free=100, most_s=300.0)
"""Mails that one network asks for: a class does at once, whose addresses each have their own count."""


class TooManyAttempts(TooManyRequests):
    """``wait``: how long, in words."""

    code = "too_many_tries"
    message = N_("There were too many tries. Wait {wait}, then try again.")

    def __init__(self, wait_s: float) -> None:
        super().__init__(wait=_duration(wait_s))
        self.wait_s = math.ceil(wait_s)
        self.headers = {"retry-after": str(self.wait_s)}


def account_limit_key(what: str, email: str) -> str:
    """The key of tries on one account, whether it exists or not. Pure."""
    return f"{what} account {hashlib.sha256(email_key(email).encode('utf-8', 'replace')).hexdigest()[:32]}"


def network_limit_key(what: str, place: str | None) -> str | None:
    """The key of tries from one network; None for one that is not counted. Pure."""
    return f"{what} address {place}" if place else None


async def count_attempt(session: AsyncSession, key: str | None, policy: RateLimitPolicy) -> None:
    """Count one more try. Raises TooManyAttempts, and counts nothing, if it comes too soon."""
    if key is None:
        return
    await advisory_lock(session, f"attempts {key}")
    moment = now()
    row = dialect_insert(session, RateLimitCounter).values(key=key, count=0, last_at=moment)
    await session.execute(row.on_conflict_do_nothing())  # a write first: SQLite then lets nobody in between
    tries = (
        await session.execute(select(RateLimitCounter).where(RateLimitCounter.key == key).with_for_update())
    ).scalar_one()
    since_s = (moment - tries.last_at).total_seconds()
    if tries.count and (wait := policy.wait_s(tries.count, since_s)) > 0:
        raise TooManyAttempts(wait)
    tries.count = 1 if since_s >= _RESET_AFTER_S else tries.count + 1
    tries.last_at = moment
    await session.flush()


async def reset_attempts(session: AsyncSession, key: str) -> None:
    """Begin anew: it was the right one."""
    await session.execute(delete(RateLimitCounter).where(RateLimitCounter.key == key))


async def refund_attempt(session: AsyncSession, key: str | None) -> None:
    """Count one try less: it was no guess. So a class behind one address can sign in, and guesses there still count."""
    mine = update(RateLimitCounter).where(RateLimitCounter.key == key, RateLimitCounter.count > 0)
    await session.execute(mine.values(count=RateLimitCounter.count - 1).execution_options(synchronize_session=False))


async def delete_expired_counters(session: AsyncSession) -> None:
    """Drop what is forgotten anyway."""
    await session.execute(
        delete(RateLimitCounter).where(RateLimitCounter.last_at < now() - timedelta(seconds=_RESET_AFTER_S))
    )


def _duration(seconds: float) -> str:
    whole = math.ceil(seconds)
    if whole < 60:
        return ngettext("%(num)s second", "%(num)s seconds", whole) % {"num": whole}
    minutes = math.ceil(whole / 60)
    return ngettext("%(num)s minute", "%(num)s minutes", minutes) % {"num": minutes}
