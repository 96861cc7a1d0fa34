"""Guessing is slowed down, for everyone at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from app.accounts.attempts import (
    OF_ACCOUNT,
    OF_ADDRESS,
    OF_MAILS,
    Policy,
    TooManyTries,
    account_key,
    address_key,
    count_try,
    forget_tries,
    sweep,
    take_back,
)
from app.accounts.models import Attempts
from app.db import Database, now


@pytest.mark.parametrize("policy", [OF_ACCOUNT, OF_ADDRESS, OF_MAILS])
def test_waits_begin_after_the_free_tries_and_grow_up_to_the_longest(policy: Policy) -> None:
    waits = [policy.wait_s(count, 0) for count in range(200)]
    assert set(waits[: policy.free]) == {0}
    assert waits[policy.free] == policy.first_s
    assert waits == sorted(waits)
    assert waits[-1] == policy.most_s


def test_time_that_has_passed_counts_and_a_long_time_forgets_all() -> None:
    assert OF_ACCOUNT.wait_s(6, 0) == 4
    assert OF_ACCOUNT.wait_s(6, 3) == 1
    assert OF_ACCOUNT.wait_s(6, 5) == 0
    assert OF_ACCOUNT.wait_s(1000, 7 * 3600) == 0


def test_a_guesser_gets_few_tries_a_day() -> None:
    at, tries, last = 0.0, 0, 0.0
    while at < 24 * 3600:
        at += OF_ACCOUNT.wait_s(tries, at - last)
        tries, last = tries + 1, at
    assert tries < 120


def test_an_address_gets_three_mails_in_an_hour_however_often_they_are_asked_for() -> None:
    sent: list[float] = []
    for second in range(0, 24 * 3600, 10):
        if not sent or OF_MAILS.wait_s(len(sent), second - sent[-1]) == 0:
            sent.append(float(second))
    assert len(sent) > 20
    assert max(sum(at <= each < at + 3600 for each in sent) for at in sent) == 3


async def test_of_many_at_once_only_the_free_ones_get_through(database: Database) -> None:
    key = account_key("sign-in", "Ada@example.org")

    async def try_it() -> bool:
        try:
            async with database.writing() as session:
                await count_try(session, key, OF_ACCOUNT)
        except TooManyTries as e:
            return not 0 < e.wait_s <= 2
        return True

    assert sum(await asyncio.gather(*(try_it() for _ in range(20)))) == OF_ACCOUNT.free
    async with database.writing() as session:
        await forget_tries(session, account_key("sign-in", "ADA@example.org"))
    assert await try_it()


async def test_a_class_behind_one_address_signs_in_however_large_it_is(database: Database) -> None:
    place = address_key("sign-in", "8.8.8.8")
    async with database.writing() as session:
        for _ in range(OF_ADDRESS.free + 5):
            await count_try(session, place, OF_ADDRESS)
            await take_back(session, place)
        await take_back(session, place)
        await take_back(session, None)
        for _ in range(OF_ADDRESS.free):
            await count_try(session, place, OF_ADDRESS)
        with pytest.raises(TooManyTries):
            await count_try(session, place, OF_ADDRESS)


async def test_what_is_forgotten_is_swept(database: Database) -> None:
    async with database.writing() as session:
        await count_try(session, address_key("sign-in", "8.8.8.8"), OF_ADDRESS)
        await count_try(session, None, OF_ADDRESS)
        await sweep(session)
        assert len((await session.scalars(select(Attempts))).all()) == 1
        await session.execute(update(Attempts).values(last_at=now() - timedelta(hours=7)))
        await sweep(session)
        assert (await session.scalars(select(Attempts))).all() == []
