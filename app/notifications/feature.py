"""The notification bell, the list of notifications, and notification emails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.accounts.signing import UNSUBSCRIBE_SECRET, load_secrets
from app.feature import Feature
from app.notifications.mailer import NotificationMailer
from app.notifications.page_piece import BELL_PIECE
from app.notifications.routes import CSRF_EXEMPT_PATHS, router
from app.notifications.service import delete_expired, erase_notifications, export_notifications
from app.notifications.unread_stream import UNREAD_COUNT_STREAMS, UnreadCountStreams
from app.notifications.unsubscribe_links import UNSUBSCRIBE_TOKENS, UnsubscribeTokens
from app.notifications.views import DESCRIBERS
from app.web.dependencies import BUS, DATABASE, SETTINGS


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Stream unread counts, and email notifications if the site has a mail server."""
    settings, db, bus = SETTINGS.get(app), DATABASE.get(app), BUS.get(app)
    secrets = await asyncio.to_thread(load_secrets, settings.data_dir / "secrets" / UNSUBSCRIBE_SECRET)
    tokens = UNSUBSCRIBE_TOKENS.set(app, UnsubscribeTokens(*secrets))
    UNREAD_COUNT_STREAMS.set(app, UnreadCountStreams(db, bus))
    if not settings.smtp_url:
        yield
        return
    mailer = NotificationMailer(db, bus, tokens, DESCRIBERS.get(app), app.url_path_for, settings.public_url)
    mailing = asyncio.create_task(mailer.run())
    try:
        yield
    finally:
        await mailing


FEATURE = Feature(
    name="notifications",
    routers=(router,),
    csrf_exempt_paths=(CSRF_EXEMPT_PATHS,),
    page_pieces=lambda _app: (BELL_PIECE,),
    lifespan=lifespan,
    cleanup_tasks=lambda _app: (delete_expired,),
    exporters={"notifications": export_notifications},
    erasers=(erase_notifications,),
)
