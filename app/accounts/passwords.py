"""Passwords: hashing with argon2id in a few threads, and rejecting new ones that are easy to guess."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable
from typing import Annotated, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from fastapi import Depends
from zxcvbn import zxcvbn

from app.errors import ServiceUnavailable
from app.i18n import N_
from app.web.dependencies import AppKey

T = TypeVar("T")
MIN_LENGTH, MAX_LENGTH = 12, 200
"""In characters."""
PARAMETERS = RFC_9106_LOW_MEMORY
MAX_CONCURRENT = 2
"""Each hash takes 64 MiB and one core for about 0.1 s."""
_MAX_WAITING = 100
DUMMY_HASH = "$argon2id$v=19$m=65536,t=3,p=4$OABBpYwzm9OFGWAe7E9wsw$40T8ADR+KWMMeTpm9Vq+ktxWmHT7eBoVETcLCjMD2jA"
"""Checked if there is no account, so that the response takes as long."""
_MAX_EXTRA_CHARACTERS = 4
"""A name or address plus at most this many other characters is still too similar to it."""
_MIN_STRENGTH = 3
"""Of 0 to 4: more than 100 million guesses, even for an attacker who knows words, keyboards, and habits."""
_ESTIMATED_CHARACTERS = 20
"""Only these are estimated: the time grows steeply, and what follows them cannot make a password easier to guess."""
_SITE_WORDS = ("lockstep", "tensorflow", "keras")

TOO_SHORT = N_("Use at least 12 characters.")
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
    typed = _normalize(password)
    plain = typed.casefold()
    own = {email.casefold(), *email.casefold().partition("@")[::2], name.casefold(), *name.casefold().split()}
    if (
        any(
            len(word) > _MAX_EXTRA_CHARACTERS and word in plain and len(plain) - len(word) <= _MAX_EXTRA_CHARACTERS
            for word in own
        )
        or plain in own
    ):
        return TOO_SIMILAR
    estimate = zxcvbn(typed[:_ESTIMATED_CHARACTERS], user_inputs=[*own, *_SITE_WORDS])
    return TOO_COMMON if estimate["score"] < _MIN_STRENGTH else None


def _normalize(password: str) -> str:
    """Keyboards encode the same character differently."""
    return unicodedata.normalize("NFC", password)


PASSWORD_HASHER = AppKey[AsyncPasswordHasher]("password_hasher")
PasswordHasherDep = Annotated[AsyncPasswordHasher, Depends(PASSWORD_HASHER.from_request)]
