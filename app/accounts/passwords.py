"""Passwords: argon2id, in threads and few at a time; and what is too easy to guess."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from app.errors import Unavailable
from app.i18n import N_

T = TypeVar("T")
LEAST, MOST = 8, 200
"""Characters."""
PARAMETERS = RFC_9106_LOW_MEMORY
AT_ONCE = 2
"""Each takes 64 MiB and a core for about 0.1 s."""
_MOST_WAITING = 100
NOBODYS = "$argon2id$v=19$m=65536,t=3,p=4$OABBpYwzm9OFGWAe7E9wsw$40T8ADR+KWMMeTpm9Vq+ktxWmHT7eBoVETcLCjMD2jA"
"""What is checked where there is no account, so that it takes as long."""
_ROWS = ("0123456789" * 2, "9876543210" * 2, "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "qwertzuiop")
_FEW = 4
"""So many other characters beside a word that everybody knows make nothing of it."""
_KNOWN = frozenset(
    (
        *("password", "passwort", "passw0rd", "p@ssword", "p@ssw0rd", "letmein", "iloveyou", "welcome", "admin"),
        *("administrator", "changeme", "secret", "login", "football", "baseball", "superman", "princess", "sunshine"),
        *("dragon", "monkey", "master", "trustno1", "qwerty", "qwertz", "abc", "tensorflow", "keras", "lockstep"),
        *("computer", "internet", "samsung", "google", "starwars", "whatever"),
    )
)

SHORT = N_("Use at least 8 characters.")
LONG = N_("Use at most 200 characters.")
EASY = N_("This is among the first that anyone would guess. A few unrelated words make a good password.")
YOURS = N_("This is little more than your name or address. A few unrelated words make a good password.")


class TooManyChecks(Unavailable):
    code = "too_many_checks"
    message = N_("Very many people are signing in right now. Try again in a moment.")


class Passwords:
    """Hashes and checks. One for each process."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher.from_parameters(PARAMETERS)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """What SQL keeps. Raises TooManyChecks."""
        return await self._in_turn(self._hash, password)

    async def check(self, stored: str | None, password: str) -> bool:
        """Whether it is the one; False, after as long, where there is none. Raises TooManyChecks."""
        fits = await self._in_turn(self._verify, stored or NOBODYS, password)
        return fits and stored is not None

    def outdated(self, stored: str) -> bool:
        """Whether it was hashed with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)

    async def _in_turn(self, work: Callable[..., T], *arguments: str) -> T:
        if self._waiting >= _MOST_WAITING:
            raise TooManyChecks
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(work, *arguments)
        finally:
            self._waiting -= 1

    def _hash(self, password: str) -> str:
        return self._hasher.hash(_spelled(password))

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, _spelled(password))
        except (VerificationError, InvalidHashError):
            return False


def weakness(password: str, *, name: str, email: str) -> str | None:
    """Why this password will not do, as a message to be translated; None if it will. Pure."""
    if len(password) < LEAST:
        return SHORT
    if len(password) > MOST:
        return LONG
    plain = _spelled(password).casefold()
    if (
        len(set(plain)) <= 2
        or any(plain in row for row in _ROWS)
        or re.sub(r"[\W\d_]+$|^[\W\d_]+", "", plain) in _KNOWN
    ):
        return EASY
    own = {email.casefold(), *email.casefold().partition("@")[::2], name.casefold(), *name.casefold().split()}
    if any(len(word) > _FEW and word in plain and len(plain) - len(word) <= _FEW for word in own) or plain in own:
        return YOURS
    return None


def _spelled(password: str) -> str:
    """Keyboards differ in how they write one and the same character."""
    return unicodedata.normalize("NFC", password)
