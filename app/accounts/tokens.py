"""Secrets that a browser or a mail holds and of which SQL keeps only the hash: they are random, so one hash will do."""

from __future__ import annotations

import hashlib


def token_hash(token: str) -> str:
    """What SQL knows a token by: 64 hex digits."""
    return hashlib.sha256(token.encode()).hexdigest()
