"""Quotas of stored output: the total kept per learner, and what a learner or an address may add within an hour.

Pruning old output (``runs.pruning``) keeps a learner within the total, so old runs never cause a refusal. But deleting
takes time, and PostgreSQL reuses the space only after a vacuum, so the hourly amount is limited too. Each web process
counts that in memory, as it does with visitors per address: addresses are never stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select

from app.accounts.models import Account, Role
from app.db import Database
from app.errors import LockstepError
from app.runs.errors import AddressQuotaReached, QuotaReached
from app.runs.limit_labels import format_limit
from app.runs.models import RUN_ROW_BYTES, Run
from app.runs.pruning import make_room
from app.settings import Settings
from runners.wire.protocol import ReachedLimit

MiB = 1024 * 1024
_HOUR_S = 3600.0
_RECHECK_BYTES = MiB
"""Bytes that a learner may store before we check the total again."""
_CLEANUP_INTERVAL_S = 60.0
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """Limits in bytes; ``keep`` is how long output is kept, None means forever."""

    account: int = _NO_LIMIT
    staff: int = _NO_LIMIT
    """An instructor or an admin."""
    visitor: int = _NO_LIMIT
    address: int = _NO_LIMIT
    visitors: int = _NO_LIMIT
    """All visitors together."""
    keep: timedelta | None = None

    @classmethod
    def of(cls, settings: Settings) -> QuotaLimits:
        return cls(
            account=settings.stored_mb_per_account * MiB or _NO_LIMIT,
            staff=settings.stored_mb_per_staff * MiB or _NO_LIMIT,
            visitor=settings.stored_mb_per_visitor * MiB or _NO_LIMIT,
            address=settings.stored_mb_per_address * MiB or _NO_LIMIT,
            visitors=settings.stored_gb_of_visitors * 1024 * MiB or _NO_LIMIT,
            keep=timedelta(days=settings.output_retention_days) if settings.output_retention_days else None,
        )

    def of_role(self, role: str | None) -> int:
        """What is stored for a learner of this role; None for a visitor without an account."""
        if role is None:
            return self.visitor
        return self.account if role == Role.learner else self.staff


@dataclass(frozen=True, slots=True)
class QuotaOwner:
    """The owner whose quotas a run counts toward.

    Attributes:
        learner: the owner.
        role: the account's, or None for a visitor without an account.
        network: a visitor's network, if it is counted.
    """

    learner: str
    role: str | None = None
    network: str | None = None


@dataclass(frozen=True, slots=True)
class _HourlyQuota:
    """The hourly limit for a key, and the error if it is exceeded."""

    key: str
    most: int
    error: type[LockstepError] = QuotaReached

    @property
    def limit(self) -> ReachedLimit:
        return ReachedLimit(name="stored", value=self.most, unit="bytes")


@dataclass(slots=True)
class _LeakyBucket:
    """A leaky bucket: its level in bytes, and the rate in bytes per second at which it drains."""

    leak: float
    at: float
    bytes: float = 0.0
    unseen: float = _RECHECK_BYTES
    """Bytes stored since the total was last checked."""


class Quotas:
    """Checked before each run and each batch of events is stored. Used from one event loop."""

    def __init__(self, db: Database, limits: QuotaLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self.limits = limits
        self._clock = clock
        self._levels: dict[str, _LeakyBucket] = {}
        self._swept_at = clock()

    def admit(self, owner: QuotaOwner, code: str) -> None:
        """Count a run that is about to be stored.

        Raises:
            QuotaReached, AddressQuotaReached: too much was stored within an hour.
        """
        full = self._full(owner, 0)
        if full is not None:
            raise full.error(most=format_limit(full.limit))
        self.count(owner, RUN_ROW_BYTES + len(code.encode("utf-8", "surrogatepass")))  # it may not be checked yet

    async def room(self, owner: QuotaOwner, size: int, *, last: bool = False) -> ReachedLimit | None:
        """Make room for ``size`` bytes of events. Returns the limit if they do not fit.

        A small batch that ends a run always fits, so that its outcome is not lost. Call ``count`` once the events are
        stored: a batch that a full disk rejects is tried many times and must not use up the quota.
        """
        few = last and size <= _RECHECK_BYTES // 16
        full = self._full(owner, size)
        if full is not None and not few:
            return full.limit
        level = self._level(next(self._quotas(owner)))
        if level.unseen + size >= _RECHECK_BYTES:
            most = self.limits.of_role(owner.role)
            fits = await make_room(self._db, owner.learner, most, size) + size <= most
            level.unseen = 0.0 if fits else _RECHECK_BYTES
            if not (fits or few):
                return _HourlyQuota("", most).limit
        return None

    def count(self, owner: QuotaOwner, size: int) -> None:
        """Count ``size`` bytes that were stored."""
        for quota in self._quotas(owner):
            level = self._level(quota)
            level.bytes += size
            level.unseen += size

    async def owner_of(self, run_id: str, network: str | None) -> QuotaOwner | None:
        """The current owner of a run."""
        owners = select(Run.learner_id, Account.role).outerjoin(Account, Account.learner_id == Run.learner_id)
        async with self._db.session() as session:
            row = (await session.execute(owners.where(Run.id == run_id))).one_or_none()
        return QuotaOwner(row[0], row[1], None if row[1] else network) if row is not None else None

    def _full(self, owner: QuotaOwner, size: int) -> _HourlyQuota | None:
        """The quota that ``size`` more bytes would exceed."""
        full = (quota for quota in self._quotas(owner) if self._level(quota).bytes + size > quota.most)
        return next(full, None)

    def _quotas(self, owner: QuotaOwner) -> Iterator[_HourlyQuota]:
        yield _HourlyQuota(f"learner {owner.learner}", self.limits.of_role(owner.role))
        if owner.network is not None:
            yield _HourlyQuota(f"address {owner.network}", self.limits.address, AddressQuotaReached)

    def _level(self, quota: _HourlyQuota) -> _LeakyBucket:
        now = self._clock()
        if now - self._swept_at > _CLEANUP_INTERVAL_S:
            self._swept_at = now
            self._levels = {key: it for key, it in self._levels.items() if it.bytes > (now - it.at) * it.leak}
        level = self._levels.setdefault(quota.key, _LeakyBucket(quota.most / _HOUR_S, now))
        level.leak = quota.most / _HOUR_S
        level.bytes = max(0.0, level.bytes - (now - level.at) * level.leak)
        level.at = now
        return level
