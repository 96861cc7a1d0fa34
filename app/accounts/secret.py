"""The secrets of a site: files that the first start writes, and what is signed with them."""

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

_SECRET_BYTES = 32


def signature(request: Request, what: str, *parts: str) -> str:
    """43 characters that only this site makes of these parts, for one use of them."""
    signed = hmac.digest(request.app.state.secret, json.dumps([what, *parts]).encode(), hashlib.sha256)
    return urlsafe_b64encode(signed).decode().rstrip("=")


def read_secret(file: Path) -> bytes:
    """The secret of this site, made at the first start. Only its user may read it."""
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
