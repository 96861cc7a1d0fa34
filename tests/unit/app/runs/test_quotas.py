"""Quotas of stored data: the total of a learner, and the amount within an hour."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from app.accounts.models import Role
from app.db import Database, now
from app.runs.errors import AddressQuotaReached, QuotaReached
from app.runs.models import Run
from app.runs.quotas import QuotaLimits, QuotaOwner, Quotas
from app.settings import Settings
from runners.wire.protocol import ReachedLimit
from tests.factories.accounts import store_account
from tests.factories.stored_output import store_run_with_output
from tests.factories.stored_runs import store_run

MiB = 1024 * 1024
LIMITS = QuotaLimits(account=4 * MiB, staff=5 * MiB, visitor=MiB, address=2 * MiB)
PLACE = "198.51.100.7"


class Clock:
    """A clock that the test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quotas(database: Database, clock: Clock) -> Quotas:
    return Quotas(database, LIMITS, clock)


def _visitor(name: str = "v", network: str | None = None) -> QuotaOwner:
    return QuotaOwner(name, network=network)


async def _store(quotas: Quotas, owner: QuotaOwner, size: int) -> ReachedLimit | None:
    """Store this many bytes of events, or return the limit."""
    limit = await quotas.room(owner, size)
    if limit is None:
        quotas.count(owner, size)
    return limit


async def test_messages_within_an_hour_are_limited_and_the_limit_is_shown(quotas: Quotas) -> None:
    for _ in range(4):
        assert await _store(quotas, _visitor(), MiB // 4) is None

    limit = await _store(quotas, _visitor(), 100)

    assert limit is not None
    assert (limit.name, limit.value, limit.unit) == ("stored", MiB, "bytes")
    assert await _store(quotas, _visitor("other"), 100) is None


async def test_it_drains_with_time(quotas: Quotas, clock: Clock) -> None:
    await _store(quotas, _visitor(), MiB)

    clock.now += 900
    assert await _store(quotas, _visitor(), MiB // 4) is None
    assert await _store(quotas, _visitor(), MiB // 4) is not None
    clock.now += 3600
    assert await _store(quotas, _visitor(), MiB) is None


async def test_many_cookies_of_one_address_share_what_it_may_store(quotas: Quotas) -> None:
    stored = 0
    for i in range(40):
        if await _store(quotas, _visitor(f"cookie {i}", PLACE), MiB // 8) is None:
            stored += MiB // 8

    assert stored == 2 * MiB
    assert await _store(quotas, _visitor("elsewhere", "203.0.113.9"), MiB) is None
    assert await _store(quotas, QuotaOwner("a", Role.learner), MiB) is None


def _admit(quotas: Quotas, owners: Iterable[QuotaOwner]) -> None:
    for owner in owners:
        quotas.admit(owner, "#" * 100_000)


async def test_a_run_is_refused_in_words_while_nothing_more_fits(quotas: Quotas) -> None:
    with pytest.raises(QuotaReached, match="1 MiB"):
        _admit(quotas, [_visitor()] * 12)
    with pytest.raises(AddressQuotaReached, match="2 MiB"):
        _admit(quotas, [_visitor(f"cookie {i}", PLACE) for i in range(40)])


async def test_an_account_has_its_own_larger_quota(quotas: Quotas) -> None:
    owner = QuotaOwner("a", Role.learner)

    assert await _store(quotas, owner, 3 * MiB) is None
    limit = await _store(quotas, owner, 2 * MiB)

    assert limit is not None
    assert limit.value == 4 * MiB


@pytest.mark.parametrize("role", [Role.instructor, Role.admin])
async def test_staff_has_a_quota_of_its_own(quotas: Quotas, role: Role) -> None:
    limit = await quotas.room(QuotaOwner("a", role), 6 * MiB)

    assert limit is not None
    assert limit.value == 5 * MiB


async def test_what_could_not_be_stored_does_not_use_up_the_quota(quotas: Quotas) -> None:
    for _ in range(10):  # the disk is full, and the same batch is tried again and again
        assert await quotas.room(_visitor(network=PLACE), MiB // 2) is None


async def test_room_is_made_in_the_total_by_pruning(quotas: Quotas, database: Database) -> None:
    old = await store_run_with_output(database, 8, MiB // 10, at=now() - timedelta(hours=9))
    live = await store_run_with_output(database, 0, finish=False)

    assert await quotas.room(_visitor(), MiB // 2) is None

    async with database.session() as session:
        assert (await session.get_one(Run, old)).pruned_at is not None
        assert (await session.get_one(Run, live)).pruned_at is None


async def test_what_live_runs_alone_fill_is_cut(quotas: Quotas, database: Database) -> None:
    await store_run_with_output(database, 9, MiB // 10, finish=False)

    assert await quotas.room(_visitor(), MiB // 2) is not None
    assert await quotas.room(_visitor(), 100, last=True) is None  # how a run ended is never lost


@pytest.mark.parametrize("role", [None, Role.learner, Role.admin])
async def test_the_owner_of_a_run_is_looked_up_and_an_account_has_no_address(
    quotas: Quotas, database: Database, role: Role | None
) -> None:
    learner = (await store_account(database, role=role)).learner_id if role else "v"
    run_id = await store_run(database, learner_id=learner)

    assert await quotas.owner_of(run_id, PLACE) == QuotaOwner(learner, role, None if role else PLACE)
    assert await quotas.owner_of("nothing", PLACE) is None


async def test_counts_of_those_who_left_are_forgotten(quotas: Quotas, clock: Clock) -> None:
    for i in range(50):
        await _store(quotas, _visitor(f"v{i}", PLACE), 10)
    clock.now += 7200
    await _store(quotas, _visitor(), 10)

    assert len(quotas._levels) == 1


async def test_zero_is_no_limit(database: Database) -> None:
    none: dict[str, Any] = {
        f"stored_{name}": 0 for name in ("mb_per_account", "mb_per_visitor", "mb_per_address", "gb_of_visitors")
    }
    limits = QuotaLimits.of(Settings(**none, output_retention_days=0))
    quotas = Quotas(database, limits)

    assert await quotas.room(_visitor(network=PLACE), 10**12) is None
    assert limits.keep is None
