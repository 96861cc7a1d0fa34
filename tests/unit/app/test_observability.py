"""The log entries of a request."""

from __future__ import annotations

import secrets

import pytest

from app.observability import redact_path


def test_the_token_of_a_mails_link_is_not_logged() -> None:
    assert redact_path(f"/en/email-link/{secrets.token_urlsafe(32)}") == "/en/email-link/…"
    assert redact_path(f"/en/unsubscribe/{'a1' * 16}.reply.65ab12cd.{secrets.token_urlsafe(32)}") == "/en/unsubscribe/…"


@pytest.mark.parametrize(
    "path", ["/", "/en/courses/distributed-tensorflow/distribution-strategies", "/runs/01a2/events"]
)
def test_other_paths_are_logged_as_they_are(path: str) -> None:
    assert redact_path(path) == path
