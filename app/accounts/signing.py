"""The secrets of a site, stored in files that the first start creates, and signatures made with them.

A secret can be rotated at any time: signatures made with the previous one stay valid until the next rotation.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from app.web.dependencies import AppKey

SIGN_IN_SECRET, UNSUBSCRIBE_SECRET = "sign-in", "unsubscribe"
"""The files in the folder ``secrets``, by purpose."""
_SECRET_BYTES = 32
_PREVIOUS_SUFFIX = ".before"


class Signer:
    """Signs with the newest of a site's ``secrets``, and accepts signatures made with any of them."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = secrets

    def sign(self, purpose: str, *parts: str) -> str:
        """A signature of 43 characters over the parts, valid for one purpose only."""
        return _sign(self._secrets[0], purpose, *parts)

    def verify(self, signature: str, purpose: str, *parts: str) -> bool:
        """Whether this site signed the parts for that purpose."""
        return signature.isascii() and any(
            hmac.compare_digest(signature, _sign(secret, purpose, *parts)) for secret in self._secrets
        )


SIGNER = AppKey[Signer]("signer")
"""Signs for signing in: trusted devices, and the challenges of passkeys."""


def load_secrets(file: Path) -> tuple[bytes, ...]:
    """Load the secret (created at the first start) and the previous one, if any. Only their owner can read them."""
    newest = _load_or_create(file)
    with suppress(FileNotFoundError):
        return newest, _read_secret(_previous_file(file))
    return (newest,)


def rotate_secret(file: Path) -> None:
    """Create a new secret. The old one becomes the previous one, which stays valid; the one before that is lost."""
    with suppress(FileNotFoundError):
        file.replace(_previous_file(file))
    _load_or_create(file)


def delete_previous_secret(file: Path) -> None:
    """Invalidate everything signed with the previous secret."""
    _previous_file(file).unlink(missing_ok=True)


def _sign(secret: bytes, purpose: str, *parts: str) -> str:
    signed = hmac.digest(secret, json.dumps([purpose, *parts]).encode(), hashlib.sha256)
    return urlsafe_b64encode(signed).decode().rstrip("=")


def _previous_file(file: Path) -> Path:
    return file.with_name(f"{file.name}{_PREVIOUS_SUFFIX}")


def _load_or_create(file: Path) -> bytes:
    with suppress(FileNotFoundError):
        return _read_secret(file)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as made:
            made.write(secrets.token_bytes(_SECRET_BYTES))
            made.flush()
            os.fsync(made.fileno())
        with suppress(FileExistsError):  # another process was faster: use its secret
            os.link(draft, file)
    finally:
        draft.unlink()
    return _read_secret(file)


def _read_secret(file: Path) -> bytes:
    secret = file.read_bytes()
    if len(secret) < _SECRET_BYTES:
        raise ValueError(f"{file} is too short to be a secret. Delete it, and Lockstep will create a new one")
    return secret
