"""Hashes of random values: of the secrets that a browser or a mail holds, and of learners' ids. One hash will do."""

from __future__ import annotations

import hashlib


def token_hash(token: str) -> str:
    """What SQL knows a token by: 64 hex digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def learner_marker(learner_id: str | None) -> str:
    """What the pages' script tells learners apart by; empty for a stranger. The id cannot be read from it."""
    return hashlib.sha256(f"marker {learner_id}".encode()).hexdigest()[:12] if learner_id else ""
