"""The security log: what happens to accounts, and what was refused, as entries of the application's log.

``docs/operate/security-log.md`` describes each event. An entry names the account by its ID and the network that rate
limits count, never an address that somebody typed, and no secret. During a request, the network, the ID of the request
and the account that is signed in are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

import structlog

from app.metrics import SECURITY_EVENTS

_log = structlog.get_logger("security")


class SecurityEvent(StrEnum):
    sign_in = "sign_in"
    sign_in_failed = "sign_in_failed"
    second_step_asked = "second_step_asked"
    sign_out = "sign_out"
    auth_sessions_ended = "auth_sessions_ended"
    reauthentication_failed = "reauthentication_failed"
    email_link_refused = "email_link_refused"
    throttled = "throttled"
    role_refused = "role_refused"
    cross_site_refused = "cross_site_refused"
    input_refused = "input_refused"
    account_created = "account_created"
    password_changed = "password_changed"  # noqa: S105 - an event
    password_reset_requested = "password_reset_requested"  # noqa: S105 - an event
    email_change_requested = "email_change_requested"
    email_changed = "email_changed"
    passkey_added = "passkey_added"
    passkey_removed = "passkey_removed"
    authenticator_added = "authenticator_added"
    authenticator_removed = "authenticator_removed"
    provider_linked = "provider_linked"
    provider_unlinked = "provider_unlinked"
    api_token_created = "api_token_created"  # noqa: S105 - an event
    api_token_revoked = "api_token_revoked"  # noqa: S105 - an event
    api_token_refused = "api_token_refused"  # noqa: S105 - an event
    role_changed = "role_changed"
    account_disabled = "account_disabled"
    account_enabled = "account_enabled"
    account_deleted = "account_deleted"
    data_exported = "data_exported"


_ROUTINE = (
    SecurityEvent.sign_in,
    SecurityEvent.second_step_asked,
    SecurityEvent.sign_out,
    SecurityEvent.account_created,
)
"""Logged as information; everything else is a warning, so that commands log it, too."""


@dataclass(slots=True)
class Caller:
    """Whoever sent the current request."""

    address: str | None
    network_of: Callable[[str], str | None]
    account: str | None = None
    """The ID of the account, once it is known."""

    @property
    def network(self) -> str | None:
        """The network of the address; worked out only for the few requests that have an entry."""
        return self.network_of(self.address) if self.address else None


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextmanager
def request_from(caller: Caller) -> Iterator[None]:
    """Entries inside the block are caused by a request of this caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def identify(account_id: str) -> None:
    """Further entries of this request are about this account unless they name another."""
    if (caller := _caller.get()) is not None:
        caller.account = account_id


def record(event: SecurityEvent, *, account: str | None = None, reason: str = "") -> None:
    """Log an event. ``account`` is an account's ID; ``reason`` is one of our own words, never a learner's."""
    caller = _caller.get() or Caller(None, lambda _address: None)
    entry = {"account": account or caller.account, "network": caller.network, "reason": reason}
    write = _log.info if event in _ROUTINE else _log.warning
    SECURITY_EVENTS.labels(event.value).inc()
    write(event.value, log="security", **{name: value for name, value in entry.items() if value})
