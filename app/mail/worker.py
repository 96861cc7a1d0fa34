"""The task that sends emails from the outbox: one per web process; each email is sent by one of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.bus import Bus
from app.database_health import log_failure
from app.db import Database
from app.mail import outbox
from app.mail.models import EmailState, OutboxEmail
from app.mail.transport import DeliveryUncertain, SendFailed, Transport
from app.web.dependencies import AppKey

_log = structlog.get_logger("mail")
_POLL_INTERVAL_S = 10.0
_CLEANUP_INTERVAL_S = 300.0


ShouldSend = Callable[[AsyncSession, OutboxEmail], Awaitable[bool]]
"""Decides whether an email may still be sent, since things may have changed after it was queued."""
EMAIL_FILTER = AppKey[ShouldSend]("email_filter")


class OutboxWorker:
    """Sends emails until the bus is closed."""

    def __init__(self, db: Database, bus: Bus, transport: Transport, should_send: ShouldSend) -> None:
        self._db = db
        self._bus = bus
        self._transport = transport
        self._should_send = should_send
        self._swept_at = float("-inf")
        self._handing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Send the emails that are due, then wait for more."""
        with self._bus.subscribe(outbox.TOPIC) as subscription:
            while not self._bus.closed:
                try:
                    await self._sweep()
                    while not self._bus.closed and await self.send_one():
                        pass
                except (SQLAlchemyError, OSError) as e:
                    log_failure(_log, "the outbox cannot be read or written", e)
                await subscription.wait(_POLL_INTERVAL_S)

    async def send_one(self) -> bool:
        """Send the email that has been due longest; False if there is none."""
        mail = await outbox.claim(self._db)
        if mail is None:
            return False
        async with self._db.session() as session:
            wanted = await self._should_send(session, mail)
        if not wanted:
            _log.info("email dropped: an account was closed, or has another address", mail=mail.id)
            await outbox.delete_sent(self._db, mail)
            return True
        self._handing = asyncio.create_task(self._transport.send(mail))
        try:
            await self._handed(self._handing)
        except SendFailed as e:
            pause = None if e.permanent else outbox.retry_delay_s(mail.attempts)
            _log.warning("email not sent", mail=mail.id, attempts=mail.attempts, error=str(e), again_in_s=pause)
            if pause is None:
                await outbox.mark_failed(self._db, mail, EmailState.failed, str(e))
            else:
                await outbox.reschedule(self._db, mail, str(e), pause)
        except DeliveryUncertain as e:
            _log.warning("email possibly not sent", mail=mail.id, error=str(e))
            await outbox.mark_failed(self._db, mail, EmailState.unconfirmed, str(e))
        except Exception as e:  # an email that cannot be built must not block the others
            _log.exception("sending an email failed", mail=mail.id)
            await outbox.mark_failed(self._db, mail, EmailState.failed, f"{type(e).__name__}: {e}")
        else:
            await outbox.delete_sent(self._db, mail)
        return True

    def cancel_delivery(self) -> None:
        """Stop waiting for the server's response to the current email."""
        if self._handing is not None:
            self._handing.cancel()

    async def _handed(self, handing: asyncio.Task[None]) -> None:
        await asyncio.wait({handing})
        if handing.cancelled():
            raise DeliveryUncertain("Lockstep shut down in the meantime")
        handing.result()

    async def _sweep(self) -> None:
        if time.monotonic() - self._swept_at < _CLEANUP_INTERVAL_S:
            return
        self._swept_at = time.monotonic()
        if lost := await outbox.mark_abandoned_unconfirmed(self._db):
            _log.warning("emails of a worker that ended are not sent again", mails=lost)
        await outbox.delete_expired(self._db)
