"""Passwords: hashed correctly, checked even without an account, and rejected if they are common."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from app.accounts import passwords as module
from app.accounts.passwords import (
    DUMMY_HASH,
    TOO_COMMON,
    TOO_LONG,
    TOO_SHORT,
    TOO_SIMILAR,
    AsyncPasswordHasher,
    TooManyPasswordChecks,
    password_weakness,
)

ADA = {"name": "Ada Byron", "email": "ada.byron@example.org"}


@pytest.fixture(autouse=True)
def password_parameters() -> None:
    """Use the product's parameters."""


async def test_a_password_fits_its_hash_and_no_other() -> None:
    passwords = AsyncPasswordHasher()
    stored = await passwords.hash("correct horse battery")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert await passwords.verify(stored, "correct horse battery")
    assert not await passwords.verify(stored, "correct horse batterY")
    assert not await passwords.verify("no hash at all", "correct horse battery")
    assert not passwords.needs_rehash(stored)
    assert passwords.needs_rehash(PasswordHasher.from_parameters(CHEAPEST).hash("x"))


async def test_the_same_letters_fit_however_a_keyboard_writes_them() -> None:
    passwords = AsyncPasswordHasher()
    assert await passwords.verify(await passwords.hash("caf\u00e9 au lait"), "cafe\u0301 au lait")


async def test_where_there_is_no_account_a_check_takes_as_long() -> None:
    passwords = AsyncPasswordHasher()
    assert not passwords.needs_rehash(DUMMY_HASH), "its parameters are those of today"
    stored = await passwords.hash("correct horse battery")

    async def fastest(of: str | None) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            assert not await passwords.verify(of, "wrong")
            times.append(time.process_time() - start)
        return min(times)

    assert await fastest(None) > 0.3 * await fastest(stored)


async def test_few_are_hashed_at_once_and_a_crowd_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_WAITING", 4)
    passwords = AsyncPasswordHasher()
    together = threading.Barrier(module.MAX_CONCURRENT)
    most = now = 0

    def slow(_self: AsyncPasswordHasher, _password: str) -> str:
        nonlocal most, now
        now += 1
        most = max(most, now)
        together.wait(20)
        time.sleep(0.05)
        now -= 1
        return ""

    monkeypatch.setattr(AsyncPasswordHasher, "_hash", slow)
    answers = await asyncio.gather(*(passwords.hash("x") for _ in range(6)), return_exceptions=True)
    assert most == module.MAX_CONCURRENT
    assert [type(answer) for answer in answers] == [str] * 4 + [TooManyPasswordChecks] * 2


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("xk7#qpL2wq9", TOO_SHORT),
        ("x" * 201, TOO_LONG),
        ("aaaaaaaaaaaa", TOO_COMMON),
        ("abababababab", TOO_COMMON),
        ("123456789012", TOO_COMMON),
        ("QWERTYUIOP[]", TOO_COMMON),
        ("Password1!!!", TOO_COMMON),
        ("P@ssw0rd2024", TOO_COMMON),
        ("iloveyou1234", TOO_COMMON),
        ("letmeinletmein", TOO_COMMON),
        ("1q2w3e4r5t6y", TOO_COMMON),
        ("monkey123456", TOO_COMMON),
        ("football2025", TOO_COMMON),
        ("tensorflow2026", TOO_COMMON),
        ("ada.byron2026", TOO_SIMILAR),
        ("ada.byron@example.org", TOO_SIMILAR),
        ("Ada Byron123", TOO_SIMILAR),
        ("correct horse battery", None),
        ("xk7#qpL2wq9v", None),
        ("x" * 19 + "k7#qpL2wq9v", TOO_COMMON),
        ("4@8({[<369&#!|1/0+%25$7" * 8, None),
        ("비밀번호는 길수록 좋다", None),
        ("密码越长越好也更容易记住", None),
    ],
)
def test_what_anyone_would_guess_is_refused(password: str, why: str | None) -> None:
    assert password_weakness(password, **ADA) == why
