"""Emails, sent through an outbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.feature import Feature
from app.mail.transport import make_transport
from app.mail.worker import EMAIL_FILTER, OutboxWorker
from app.web.dependencies import BUS, DATABASE, SETTINGS

_SHUTDOWN_TIMEOUT_S = 3.0


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Send the emails in the outbox. On shutdown, wait a while for the email that is being sent."""
    worker = OutboxWorker(DATABASE.get(app), BUS.get(app), make_transport(SETTINGS.get(app)), EMAIL_FILTER.get(app))
    sending = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        _done, late = await asyncio.wait({sending}, timeout=_SHUTDOWN_TIMEOUT_S)
        if late:
            worker.cancel_delivery()  # database work is never interrupted
        await sending


FEATURE = Feature(
    name="mail",
    lifespan=lifespan,
)
