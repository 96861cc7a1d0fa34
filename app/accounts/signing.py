"""The secrets of a site: files that the first start writes, and what is signed with them.

A secret can be replaced at any time: what the one before it has signed is believed until it is replaced once more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

from starlette.requests import Request

from app.web.dependencies import AppKey

SIGN_IN_SECRET, UNSUBSCRIBE_SECRET = "sign-in", "unsubscribe"
"""The files in the folder ``secrets``, by what they are for."""
SECRETS = AppKey[tuple[bytes, ...]]("secrets")
"""The secret of sign-ins, and the one before it if there is one."""
_SECRET_BYTES = 32
_PREVIOUS_SUFFIX = ".before"


def sign(request: Request, what: str, *parts: str) -> str:
    """43 characters that only this site makes of these parts, for one use of them."""
    return _sign(SECRETS.get(request.app)[0], what, *parts)


def verify_signature(request: Request, mark: str, what: str, *parts: str) -> bool:
    """Whether this site has made it of these parts, with its secret or the one before."""
    return any(hmac.compare_digest(mark, _sign(secret, what, *parts)) for secret in SECRETS.get(request.app))


def load_secrets(file: Path) -> tuple[bytes, ...]:
    """The secret, made at the first start, and the one before it if there is one. Only their user may read them."""
    newest = _load_or_create(file)
    with suppress(FileNotFoundError):
        return newest, _read_secret(_previous_file(file))
    return (newest,)


def rotate_secret(file: Path) -> None:
    """Put a new secret in the place of the one that is there, which goes on to be believed; the one before it ends."""
    with suppress(FileNotFoundError):
        file.replace(_previous_file(file))
    _load_or_create(file)


def delete_previous_secret(file: Path) -> None:
    """Believe nothing any more that was signed with the secret before this one."""
    _previous_file(file).unlink(missing_ok=True)


def _sign(secret: bytes, what: str, *parts: str) -> str:
    signed = hmac.digest(secret, json.dumps([what, *parts]).encode(), hashlib.sha256)
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
        with suppress(FileExistsError):  # another process was quicker: its secret is the one
            os.link(draft, file)
    finally:
        draft.unlink()
    return _read_secret(file)


def _read_secret(file: Path) -> bytes:
    secret = file.read_bytes()
    if len(secret) < _SECRET_BYTES:
        raise ValueError(f"{file} is too short to be a secret. Delete it, and Lockstep creates a new one")
    return secret
