"""The live count of unread notifications: a stream for each browser, over with the sign-in, a few for one account."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sqlalchemy import select

from app.accounts.models import Account, SignIn
from app.bus import Bus
from app.db import Database, now
from app.errors import TooMany
from app.notifications.service import topic, unread_count
from app.web.sse import Frame, Seats

MOST_STREAMS = 8
"""For one account in one web process."""
_LOOK_EVERY_S = 10.0
"""What another web process has stored is seen after so long, and so is the end of a sign-in."""
_OVER = Frame("over", "{}")


class Live:
    """Streams of counts. One for each process, ``app.state.live``."""

    def __init__(self, db: Database, bus: Bus) -> None:
        self._db = db
        self._bus = bus
        self._seats = Seats(MOST_STREAMS)

    def frames(self, sign_in: SignIn | None) -> AsyncIterator[list[Frame]]:
        """``unread`` with a number, now and whenever it is another; ``over`` without a sign-in, or once it has ended.

        Raises:
            TooMany: this account has enough of them.
        """
        if sign_in is None:
            return _over()
        if self._seats.full(sign_in.account_id):
            raise TooMany
        return self._frames(sign_in.account_id, sign_in.token_hash)

    async def _frames(self, account_id: str, token_hash: str) -> AsyncIterator[list[Frame]]:
        with self._seats.taken(account_id) as seated, self._bus.listen(topic(account_id)) as bell:
            told = None
            while seated and not self._bus.closed:
                unread = await self._look(account_id, token_hash)
                if unread is None:
                    yield [_OVER]
                    return
                if unread != told:
                    yield [Frame("unread", str(unread))]
                told = unread
                await bell.wait(_LOOK_EVERY_S)

    async def _look(self, account_id: str, token_hash: str) -> int | None:
        live = (SignIn.token_hash == token_hash, SignIn.expires_at > now(), Account.disabled_at.is_(None))
        async with self._db.session() as session:
            signed_in = select(SignIn.account_id).join(Account, Account.id == SignIn.account_id).where(*live)
            if await session.scalar(signed_in) is None:
                return None
            return await unread_count(session, account_id)


async def _over() -> AsyncIterator[list[Frame]]:
    yield [_OVER]
