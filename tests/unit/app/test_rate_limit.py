"""Guessing is slowed down, for all processes at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from app.accounts.rate_limit import (
    ATTEMPTS_PER_ACCOUNT,
    ATTEMPTS_PER_NETWORK,
    EMAILS_PER_RECIPIENT,
    account_limit_key,
)
from app.comments.rate_limit import RATE_LIMITS
from app.db import Database, now
from app.rate_limit import (
    RateLimitCounter,
    RateLimitPolicy,
    TooManyAttempts,
    WindowLimit,
    count_attempt,
    delete_expired_counters,
    network_limit_key,
    refund_attempt,
    reset_attempts,
    retry_after,
)


@pytest.mark.parametrize("policy", [ATTEMPTS_PER_ACCOUNT, ATTEMPTS_PER_NETWORK, EMAILS_PER_RECIPIENT])
def test_waits_begin_after_the_free_tries_and_grow_up_to_the_longest(policy: RateLimitPolicy) -> None:
    waits = [policy.remaining_delay_s(count, 0) for count in range(200)]
    assert set(waits[: policy.free_attempts]) == {0}
    assert waits[policy.free_attempts] == policy.initial_delay_s
    assert waits == sorted(waits)
    assert waits[-1] == policy.max_delay_s


def test_time_that_has_passed_counts_and_a_long_time_forgets_all() -> None:
    assert ATTEMPTS_PER_ACCOUNT.remaining_delay_s(6, 0) == 4
    assert ATTEMPTS_PER_ACCOUNT.remaining_delay_s(6, 3) == 1
    assert ATTEMPTS_PER_ACCOUNT.remaining_delay_s(6, 5) == 0
    assert ATTEMPTS_PER_ACCOUNT.remaining_delay_s(1000, 7 * 3600) == 0


def test_a_guesser_gets_few_tries_a_day() -> None:
    at, tries, last = 0.0, 0, 0.0
    while at < 24 * 3600:
        at += ATTEMPTS_PER_ACCOUNT.remaining_delay_s(tries, at - last)
        tries, last = tries + 1, at
    assert tries < 120


def test_an_address_gets_three_mails_in_an_hour_however_often_they_are_asked_for() -> None:
    sent: list[float] = []
    for second in range(0, 24 * 3600, 10):
        if not sent or EMAILS_PER_RECIPIENT.remaining_delay_s(len(sent), second - sent[-1]) == 0:
            sent.append(float(second))
    assert len(sent) > 20
    assert max(sum(at <= each < at + 3600 for each in sent) for at in sent) == 3


@pytest.mark.usefixtures("rate_limit_clock")
async def test_of_many_at_once_only_the_free_ones_get_through(database: Database) -> None:
    key = account_limit_key("sign-in", "Ada@example.org")
    waits: list[float] = []

    async def try_it() -> None:
        try:
            async with database.writing() as session:
                await count_attempt(session, key, ATTEMPTS_PER_ACCOUNT)
        except TooManyAttempts as e:
            waits.append(e.delay_s)

    await asyncio.gather(*(try_it() for _ in range(20)))
    assert waits == [ATTEMPTS_PER_ACCOUNT.initial_delay_s] * (20 - ATTEMPTS_PER_ACCOUNT.free_attempts)
    waits.clear()
    async with database.writing() as session:
        await reset_attempts(session, account_limit_key("sign-in", "ADA@example.org"))
    await try_it()
    assert not waits


async def test_a_class_behind_one_address_signs_in_however_large_it_is(database: Database) -> None:
    place = network_limit_key("sign-in", "8.8.8.8")
    async with database.writing() as session:
        for _ in range(ATTEMPTS_PER_NETWORK.free_attempts + 5):
            await count_attempt(session, place, ATTEMPTS_PER_NETWORK)
            await refund_attempt(session, place)
        await refund_attempt(session, place)
        await refund_attempt(session, None)
        for _ in range(ATTEMPTS_PER_NETWORK.free_attempts):
            await count_attempt(session, place, ATTEMPTS_PER_NETWORK)
        with pytest.raises(TooManyAttempts):
            await count_attempt(session, place, ATTEMPTS_PER_NETWORK)


async def test_what_is_forgotten_is_swept(database: Database) -> None:
    async with database.writing() as session:
        await count_attempt(session, network_limit_key("sign-in", "8.8.8.8"), ATTEMPTS_PER_NETWORK)
        await count_attempt(session, None, ATTEMPTS_PER_NETWORK)
        await delete_expired_counters(session)
        assert len((await session.scalars(select(RateLimitCounter))).all()) == 1
        await session.execute(update(RateLimitCounter).values(last_at=now() - timedelta(hours=7)))
        await delete_expired_counters(session)
        assert (await session.scalars(select(RateLimitCounter))).all() == []


# --- limits on what has timestamps of its own -------------------------------------------------------------------------

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _written(*seconds_ago: int) -> list[datetime]:
    return [NOW - timedelta(seconds=s) for s in seconds_ago]


def test_who_has_written_little_need_not_wait() -> None:
    assert retry_after(_written(1, 2, 3), NOW, RATE_LIMITS) == timedelta(0)


def test_who_has_written_enough_waits_until_the_oldest_is_long_enough_ago() -> None:
    rules = (WindowLimit(3, timedelta(minutes=1)),)

    assert retry_after(_written(5, 10, 20), NOW, rules) == timedelta(seconds=40)
    assert retry_after(_written(5, 10, 60), NOW, rules) == timedelta(0)


def test_the_longest_of_several_waits_counts() -> None:
    rules = (WindowLimit(1, timedelta(minutes=1)), WindowLimit(2, timedelta(hours=1)))

    assert retry_after(_written(10, 60), NOW, rules) == timedelta(minutes=59)
