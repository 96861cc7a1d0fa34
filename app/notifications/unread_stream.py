"""The live count of unread notifications: a stream per browser, which ends with the auth session; a few per account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy import select

from app.accounts.models import Account, AuthSession
from app.bus import Bus
from app.db import Database, now
from app.errors import TooManyRequests
from app.notifications.service import account_topic, unread_count
from app.web.dependencies import AppKey
from app.web.sse import ConnectionLimiter, ServerSentEvent

MAX_STREAMS = 8
"""Per account and web process."""
_POLL_INTERVAL_S = 10.0
"""Delay until changes by other web processes and the end of the auth session are noticed."""
_ENDED = ServerSentEvent("over", "{}")


class UnreadCountStreams:
    """Streams of unread counts. One per process."""

    def __init__(self, db: Database, bus: Bus) -> None:
        self._db = db
        self._bus = bus
        self._streams = ConnectionLimiter(MAX_STREAMS)

    def events(self, sign_in: AuthSession | None) -> AsyncIterator[list[ServerSentEvent]]:
        """``unread`` with a number, now and whenever it changes; ``over`` once there is no auth session.

        Raises:
            TooManyRequests: the account has too many streams.
        """
        if sign_in is None:
            return _ended_stream()
        if self._streams.full(sign_in.account_id):
            raise TooManyRequests
        return self._frames(sign_in.account_id, sign_in.token_hash)

    async def _frames(self, account_id: str, token_hash: str) -> AsyncIterator[list[ServerSentEvent]]:
        with self._streams.taken(account_id) as admitted, self._bus.subscribe(account_topic(account_id)) as events:
            sent = None
            while admitted and not self._bus.closed:
                unread = await self._current_count(account_id, token_hash)
                if unread is None:
                    yield [_ENDED]
                    return
                if unread != sent:
                    yield [ServerSentEvent("unread", str(unread))]
                sent = unread
                await events.wait(_POLL_INTERVAL_S)

    async def _current_count(self, account_id: str, token_hash: str) -> int | None:
        live = (AuthSession.token_hash == token_hash, AuthSession.expires_at > now(), Account.disabled_at.is_(None))
        async with self._db.session() as session:
            signed_in = select(AuthSession.account_id).join(Account, Account.id == AuthSession.account_id).where(*live)
            if await session.scalar(signed_in) is None:
                return None
            return await unread_count(session, account_id)


async def _ended_stream() -> AsyncIterator[list[ServerSentEvent]]:
    yield [_ENDED]


UNREAD_COUNT_STREAMS = AppKey[UnreadCountStreams]("unread_count_streams")
UnreadCountStreamsDep = Annotated[UnreadCountStreams, Depends(UNREAD_COUNT_STREAMS.from_request)]
