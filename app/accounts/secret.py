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

SIGN_IN, UNSUBSCRIBE = "sign-in", "unsubscribe"
"""The files in the folder ``secrets``, by what they are for."""
_SECRET_BYTES = 32
_BEFORE = ".before"


def signature(request: Request, what: str, *parts: str) -> str:
    """43 characters that only this site makes of these parts, for one use of them."""
    return _signed(request.app.state.secrets[0], what, *parts)


def is_signature(request: Request, mark: str, what: str, *parts: str) -> bool:
    """Whether this site has made it of these parts, with its secret or the one before."""
    return any(hmac.compare_digest(mark, _signed(secret, what, *parts)) for secret in request.app.state.secrets)


def read_secrets(file: Path) -> tuple[bytes, ...]:
    """The secret, made at the first start, and the one before it if there is one. Only their user may read them."""
    newest = _made(file)
    with suppress(FileNotFoundError):
        return newest, _checked(_before(file))
    return (newest,)


def rotate(file: Path) -> None:
    """Put a new secret in the place of the one that is there, which goes on to be believed; the one before it ends."""
    with suppress(FileNotFoundError):
        file.replace(_before(file))
    _made(file)


def forget(file: Path) -> None:
    """Believe nothing any more that was signed with the secret before this one."""
    _before(file).unlink(missing_ok=True)


def _signed(secret: bytes, what: str, *parts: str) -> str:
    signed = hmac.digest(secret, json.dumps([what, *parts]).encode(), hashlib.sha256)
    return urlsafe_b64encode(signed).decode().rstrip("=")


def _before(file: Path) -> Path:
    return file.with_name(f"{file.name}{_BEFORE}")


def _made(file: Path) -> bytes:
    with suppress(FileNotFoundError):
        return _checked(file)
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
    return _checked(file)


def _checked(file: Path) -> bytes:
    secret = file.read_bytes()
    if len(secret) < _SECRET_BYTES:
        raise ValueError(f"{file} is too short to be a secret: delete it, and a new one is made")
    return secret
