"""Hashes of random values: tokens in browsers and emails, and learner IDs. As they are random, one hash is enough."""

from __future__ import annotations

import hashlib


def token_hash(token: str) -> str:
    """The form in which SQL stores a token: 64 hex digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def learner_marker(learner_id: str | None) -> str:
    """A short hash by which page scripts tell learners apart; empty for visitors. It does not reveal the ID."""
    return hashlib.sha256(f"marker {learner_id}".encode()).hexdigest()[:12] if learner_id else ""
