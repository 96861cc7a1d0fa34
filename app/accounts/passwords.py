"""Passwords: hashing with argon2id in a few threads, and rejecting those that are easy to guess."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable
from typing import Annotated, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from fastapi import Depends

from app.errors import ServiceUnavailable
from app.i18n import N_
from app.web.dependencies import AppKey

T = TypeVar("T")
MIN_LENGTH, MAX_LENGTH = 8, 200
"""In characters."""
PARAMETERS = RFC_9106_LOW_MEMORY
MAX_CONCURRENT = 2
"""Each hash takes 64 MiB and one core for about 0.1 s."""
_MAX_WAITING = 100
DUMMY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$OABBpYwzm9OFGWAe7E9wsw$40T8ADR+KWMMeTpm9Vq+ktxWmHT7eBoVETcLCjMD2jA"
"""Checked if there is no account, so that the response takes as long."""
_SEQUENCES = (
    "0123456789" * 2,
    "9876543210" * 2,
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiop",
)
_MAX_EXTRA_CHARACTERS = 4
"""A common word plus at most this many other characters is still too common."""
_COMMON_WORDS = frozenset(
    (
        *("password", "passwort", "passw0rd", "p@ssword", "p@ssw0rd", "letmein", "iloveyou", "welcome", "admin"),
        *("administrator", "changeme", "secret", "login", "football", "baseball", "superman", "princess", "sunshine"),
        *("dragon", "monkey", "master", "trustno1", "qwerty", "qwertz", "abc", "tensorflow", "keras", "lockstep"),
        *("computer", "internet", "samsung", "google", "starwars", "whatever"),
    )
)

TOO_SHORT = N_("Use at least 8 characters.")
TOO_LONG = N_("Use at most 200 characters.")
TOO_COMMON = N_("This password is too common. A few unrelated words make a good password.")
TOO_SIMILAR = N_("This password is too similar to your name or address. A few unrelated words make a good password.")


class TooManyPasswordChecks(ServiceUnavailable):
    message = N_("Too many people are signing in right now. Try again in a moment.")


class AsyncPasswordHasher:
    """Hashes and checks passwords. One per process."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher.from_parameters(PARAMETERS)
        self._turns = asyncio.Semaphore(MAX_CONCURRENT)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """The hash to store. Raises TooManyPasswordChecks."""
        return await self._run_limited(self._hash, password)

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether the password matches. Without a hash, False, in the same time. Raises TooManyPasswordChecks."""
        fits = await self._run_limited(self._verify, stored or DUMMY_HASH, password)
        return fits and stored is not None

    def needs_rehash(self, stored: str) -> bool:
        """Whether the hash was made with parameters other than the current ones."""
        return self._hasher.check_needs_rehash(stored)

    async def _run_limited(self, work: Callable[..., T], *arguments: str) -> T:
        if self._waiting >= _MAX_WAITING:
            raise TooManyPasswordChecks
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(work, *arguments)
        finally:
            self._waiting -= 1

    def _hash(self, password: str) -> str:
        return self._hasher.hash(_normalize(password))

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, _normalize(password))
        except (VerificationError, InvalidHashError):
            return False


def password_weakness(password: str, *, name: str, email: str) -> str | None:
    """Why this password is too weak, as a message to be translated; None if it is not. Pure."""
    if len(password) < MIN_LENGTH:
        return TOO_SHORT
    if len(password) > MAX_LENGTH:
        return TOO_LONG
    plain = _normalize(password).casefold()
    if (
        len(set(plain)) <= 2
        or any(plain in row for row in _SEQUENCES)
        or re.sub(r"[\W\d_]+$|^[\W\d_]+", "", plain) in _COMMON_WORDS
    ):
        return TOO_COMMON
    own = {email.casefold(), *email.casefold().partition("@")[::2], name.casefold(), *name.casefold().split()}
    if (
        any(
            len(word) > _MAX_EXTRA_CHARACTERS and word in plain and len(plain) - len(word) <= _MAX_EXTRA_CHARACTERS
            for word in own
        )
        or plain in own
    ):
        return TOO_SIMILAR
    return None


def _normalize(password: str) -> str:
    """Keyboards encode the same character differently."""
    return unicodedata.normalize("NFC", password)


PASSWORD_HASHER = AppKey[AsyncPasswordHasher]("password_hasher")
PasswordHasherDep = Annotated[AsyncPasswordHasher, Depends(PASSWORD_HASHER.from_request)]
