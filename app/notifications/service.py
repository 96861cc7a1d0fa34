"""What can be done with notifications: one function per verb. They flush; the caller commits.

Nobody is told of what they did themselves, of the same thing twice, or once their account is disabled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import String, bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, EmailFrequency
from app.bus import publish_on_commit
from app.db import delete_batch, dialect_insert, now, sortable_id, stream_scalars
from app.notifications.models import EmailOptOut, Notification, NotificationKind

MAILER_TOPIC = "notifications to be mailed"
"""Published when somebody has a new notification."""
RETENTION = timedelta(days=365)
MAX_COUNTED = 100
"""Unread notifications beyond this many are "more"."""
PAGE_SIZE = 30
_CLEANUP_BATCH = 500
"""Rows deleted in one transaction."""
_UNREAD = select(Notification.id).where(
    Notification.account_id == bindparam("account", type_=String), Notification.read_at.is_(None)
)
_COUNT = select(func.count()).select_from(_UNREAD.limit(MAX_COUNTED).subquery())  # made once: every page asks it
_EXPORTED_FIELDS = ("kind", "subject", "created_at", "read_at", "emailed_at")


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """One page of a list; ``before`` leads on, if there is more."""

    notifications: list[Notification]
    before: str | None


def account_topic(account_id: str) -> str:
    """Published when the notifications of an account have changed."""
    return f"notifications {account_id}"


async def notify(
    session: AsyncSession, account_ids: Iterable[str], kind: NotificationKind, subject: str, actor_id: str | None = None
) -> None:
    """Tell some accounts, each once for a kind and a subject. ``actor_id`` is who did it."""
    wanted = set(account_ids) - {actor_id}
    if not wanted:
        return
    live = select(Account.id).where(Account.id.in_(wanted), Account.disabled_at.is_(None))
    about = {"kind": kind, "subject": subject, "actor_id": actor_id, "created_at": now()}
    rows = [{"id": sortable_id(), "account_id": account_id, **about} for account_id in await session.scalars(live)]
    if rows:
        new = dialect_insert(session, Notification).values(rows).on_conflict_do_nothing()
        for account_id in await session.scalars(new.returning(Notification.account_id)):
            publish_on_commit(session, account_topic(account_id))
            publish_on_commit(session, MAILER_TOPIC)


async def notified_accounts(session: AsyncSession, subject: str) -> dict[str, str]:
    """Which accounts have been told of a subject: the kind, by account."""
    told = select(Notification.account_id, Notification.kind).where(Notification.subject == subject)
    return {row.account_id: row.kind for row in await session.execute(told)}


async def delete_notifications(session: AsyncSession, subject: str) -> None:
    """What it was about is gone: nobody is told of it any more."""
    gone = delete(Notification).where(Notification.subject == subject).returning(Notification.account_id)
    for account_id in await session.scalars(gone):
        publish_on_commit(session, account_topic(account_id))


async def unread_count(session: AsyncSession, account_id: str) -> int:
    """How many are unread, up to ``MOST_COUNTED``."""
    return await session.scalar(_COUNT, {"account": account_id}) or 0


async def list_notifications(session: AsyncSession, account_id: str, before: str | None = None) -> NotificationPage:
    """The latest ones, or those before one of them."""
    mine = select(Notification).where(Notification.account_id == account_id)
    if before is not None:
        mine = mine.where(Notification.id < before)
    found = list(await session.scalars(mine.order_by(Notification.id.desc()).limit(PAGE_SIZE + 1)))
    shown = found[:PAGE_SIZE]
    return NotificationPage(shown, shown[-1].id if len(found) > PAGE_SIZE else None)


async def get_notification(session: AsyncSession, account_id: str, notification_id: str) -> Notification | None:
    """One of an account's own."""
    mine = (Notification.id == notification_id, Notification.account_id == account_id)
    return await session.scalar(select(Notification).where(*mine))


async def mark_read(session: AsyncSession, account_id: str, notification_id: str | None = None) -> None:
    """Note that one was read, or all of them."""
    unread = update(Notification).where(Notification.account_id == account_id, Notification.read_at.is_(None))
    if notification_id is not None:
        unread = unread.where(Notification.id == notification_id)
    await session.execute(unread.values(read_at=now()).execution_options(synchronize_session=False))
    publish_on_commit(session, account_topic(account_id))


async def delete_expired(session: AsyncSession) -> bool:
    """Delete some of what was told long ago; True if there may be more."""
    return (
        await delete_batch(session, Notification, _CLEANUP_BATCH, Notification.created_at < now() - RETENTION)
        == _CLEANUP_BATCH
    )


# --- mails ------------------------------------------------------------------------------------------------------------


async def email_opt_outs(session: AsyncSession, account_id: str) -> list[NotificationKind]:
    """The kinds that an account wants no mail about, in their order."""
    refused = set(await session.scalars(select(EmailOptOut.kind).where(EmailOptOut.account_id == account_id)))
    return [kind for kind in NotificationKind if kind in refused]


async def opt_out_of_emails(session: AsyncSession, account_id: str, kind: NotificationKind | None) -> None:
    """Send no more mails about a kind, or about anything. Twice is once."""
    if kind is None:
        await session.execute(
            update(Account).where(Account.id == account_id).values(email_frequency=EmailFrequency.never)
        )
        return
    refused = dialect_insert(session, EmailOptOut).values(account_id=account_id, kind=kind)
    await session.execute(refused.on_conflict_do_nothing())


async def opt_in_to_emails(session: AsyncSession, account_id: str, kind: NotificationKind) -> None:
    """Send mails about a kind again."""
    await session.execute(delete(EmailOptOut).filter_by(account_id=account_id, kind=kind))


async def export_notifications(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """What an account was told, and what it wants no mail about. They are erased with its row."""
    mine = select(Notification).where(Notification.account_id == account.id).order_by(Notification.id)
    async for row in stream_scalars(session, mine):
        yield {name: getattr(row, name) for name in _EXPORTED_FIELDS}
    for kind in await email_opt_outs(session, account.id):
        yield {"kind": "no_mail", "about": kind}
