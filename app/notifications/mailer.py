"""The task that emails notifications: one per web process; each notification is emailed once, by one of them.

One UPDATE claims notifications (``emailed_at``) in the transaction that puts the email into the outbox, so a second
process claims nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from sqlalchemy import ColumnElement, Select, and_, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from app import i18n
from app.accounts.models import Account, EmailFrequency
from app.bus import Bus
from app.database_health import log_failure
from app.db import Database, now
from app.mail import outbox
from app.mail.renderer import TemplatedEmail
from app.notifications import service
from app.notifications.models import EMAILED_KINDS, EmailOptOut, Notification, NotificationKind
from app.notifications.unsubscribe_links import UnsubscribeRequest, UnsubscribeTokens
from app.notifications.views import Describers, NotificationView, build_views

DIGEST_HOUR = 8
_MAX_AGE = timedelta(days=3)
"""Older notifications are not emailed: emails were off or postponed when they were new."""
_MAX_ITEMS = 50
_BATCH_SIZE = 500
"""Notifications per query."""
_POLL_INTERVAL_S = 30.0
_log = structlog.get_logger("notifications")


def latest_digest_time(at: datetime, time_zone: str) -> datetime:
    """The last time it was 8 a.m. in that time zone: earlier notifications belong in the digest. Pure."""
    try:
        zone = ZoneInfo(time_zone)
    except (OSError, ValueError, KeyError):
        zone = ZoneInfo("UTC")
    local = at.astimezone(zone)
    eight = local.replace(hour=DIGEST_HOUR, minute=0, second=0, microsecond=0, fold=0)
    if eight > local:
        eight = (local - timedelta(days=1)).replace(hour=DIGEST_HOUR, minute=0, second=0, microsecond=0, fold=0)
    return eight.astimezone(UTC)


class NotificationMailer:
    """Puts notification emails into the outbox until the bus is closed.

    ``url_path_for`` makes the path of a route; ``base_url`` comes before it.
    """

    def __init__(
        self,
        db: Database,
        bus: Bus,
        unsubscribe_tokens: UnsubscribeTokens,
        describers: Describers,
        url_path_for: Callable[..., str],
        base_url: str,
    ) -> None:
        self._db = db
        self._bus = bus
        self._unsubscribe_tokens = unsubscribe_tokens
        self._describers = describers
        self._url_path_for = url_path_for
        self._base_url = base_url

    async def run(self) -> None:
        """Email what is due, then wait for more."""
        with self._bus.subscribe(service.MAILER_TOPIC) as subscription:
            while not self._bus.closed:
                try:
                    await self.send_due(now())
                except (SQLAlchemyError, OSError) as e:
                    log_failure(_log, "notifications could not be read or emailed", e)
                await subscription.wait(_POLL_INTERVAL_S)

    async def send_due(self, at: datetime) -> int:
        """Email what is due at that moment. Returns the number of emails."""
        mailed, after, seen = 0, (at - _MAX_AGE, ""), set[str]()
        while not self._bus.closed:
            async with self._db.session() as session:
                waiting = (await session.execute(_pending(at, after))).all()
            for told_at, _id, account_id, frequency, time_zone in waiting:
                until = latest_digest_time(at, time_zone) if frequency == EmailFrequency.daily else at
                if told_at <= until and account_id not in seen:
                    seen.add(account_id)
                    mailed += await self._send_safely(account_id, at, until)
            if len(waiting) < _BATCH_SIZE:
                break
            after = waiting[-1].created_at, waiting[-1].id
        return mailed

    async def _send_safely(self, account_id: str, at: datetime, until: datetime) -> bool:
        if self._bus.closed:
            return False
        try:
            async with self._db.session() as session:
                account = await session.get_one(Account, account_id)
            return await self._send(account, at, until)
        except Exception as e:  # a failure must not block the others; the notifications stay unclaimed
            log_failure(_log, "a notification email could not be created", e, account=account_id)
            return False

    async def _send(self, account: Account, at: datetime, until: datetime) -> bool:
        mine = (*_unsent_conditions(at), Notification.account_id == account.id, Notification.created_at <= until)
        claim = update(Notification).where(*mine).values(emailed_at=at).returning(Notification.id)
        async with self._db.writing() as session:
            ids = list(await session.scalars(claim.execution_options(synchronize_session=False)))
            if not ids:
                return False
            claimed = select(Notification).where(Notification.id.in_(ids)).order_by(Notification.id)
            with i18n.use_language(account.language):
                views = await build_views(session, self._describers, account, list(await session.scalars(claimed)))
                views = [view for view in views if view.content is not None]
                if views:
                    await outbox.enqueue(session, self._render(account, views), at)
            return bool(views)

    def _render(self, account: Account, views: Sequence[NotificationView]) -> TemplatedEmail:
        """The email about notifications, in the current language."""
        kinds = {NotificationKind(view.notification.kind) for view in views}
        one_kind = kinds.pop() if len(kinds) == 1 and account.email_frequency == EmailFrequency.immediately else None
        token = self._unsubscribe_tokens.sign(UnsubscribeRequest(account.id, one_kind))

        def url(route: str, **parts: str) -> str:
            return f"{self._base_url}{self._url_path_for(route, lang=account.language, **parts)}"

        items = [
            {"view": view, "url": f"{url(view.content.route, **view.content.route_params)}{view.content.anchor}"}
            for view in views[:_MAX_ITEMS]
            if view.content is not None
        ]
        values = {"name": account.name, "items": items, "more": len(views) - len(items), "count": len(views)}
        values |= {"all_url": url("notifications"), "settings_url": url("settings_page")}
        unsubscribe_url = url("unsubscribe_page", token=token)
        template = "notifications/mail/notifications.html"
        return TemplatedEmail(
            account.email, account.language, template, values, account.id, unsubscribe_url=unsubscribe_url
        )


def _pending(at: datetime, after: tuple[datetime, str]) -> Select[datetime, str, str, str, str]:
    """Some notifications to email, oldest first, with their accounts: those after a timestamp and an ID."""
    wanted = (
        Account.email_frequency != EmailFrequency.never,
        Account.disabled_at.is_(None),
        Account.email_confirmed_at.is_not(None),
    )
    moment, last = after
    further = or_(Notification.created_at > moment, and_(Notification.created_at == moment, Notification.id > last))
    shown = (
        Notification.created_at,
        Notification.id,
        Notification.account_id,
        Account.email_frequency,
        Account.time_zone,
    )
    due = select(*shown).join(Account, Account.id == Notification.account_id)
    due = due.where(Notification.created_at >= moment, further, *wanted, *_unsent_conditions(at))
    return due.order_by(Notification.created_at, Notification.id).limit(_BATCH_SIZE)


def _unsent_conditions(at: datetime) -> tuple[ColumnElement[bool], ...]:
    refused = select(EmailOptOut.kind).where(
        EmailOptOut.account_id == Notification.account_id, EmailOptOut.kind == Notification.kind
    )
    return (
        Notification.read_at.is_(None),
        Notification.emailed_at.is_(None),
        Notification.created_at > at - _MAX_AGE,
        Notification.kind.in_(EMAILED_KINDS),
        ~refused.correlate(Notification).exists(),
    )
