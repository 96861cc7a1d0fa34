"""Operations on notifications, one function each. They flush; the caller commits.

Nobody is notified of their own actions, twice of the same subject, or while their account is disabled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, String, and_, bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, EmailFrequency
from app.accounts.page_pieces import ACCOUNT_ID
from app.bus import publish_on_commit
from app.db import delete_batch, dialect_insert, now, sortable_id, stream_scalars
from app.mail.models import EmailState, OutboxEmail
from app.notifications.models import EmailOptOut, Notification, NotificationKind

MAILER_TOPIC = "notifications to be mailed"
"""Published when an account has a new notification."""
RETENTION = timedelta(days=365)
MAX_COUNTED = 100
"""The unread count stops here and shows "more than"."""
PAGE_SIZE = 30
_CLEANUP_BATCH = 500
"""Rows deleted per transaction."""
_UNREAD = select(Notification.id).where(
    Notification.account_id == bindparam("account", type_=String), Notification.read_at.is_(None)
)
_COUNT = select(func.count()).select_from(_UNREAD.limit(MAX_COUNTED).subquery())  # built once: every page runs it
UNREAD_FACT = (
    select(func.count())
    .select_from(
        select(Notification.id)
        .where(Notification.account_id == ACCOUNT_ID, Notification.read_at.is_(None))
        .limit(MAX_COUNTED)
        .subquery()
    )
    .scalar_subquery()
)
"""The unread count, among the facts of a page's pieces."""
_EXPORTED_FIELDS = ("kind", "subject", "created_at", "read_at", "emailed_at")


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """A page of notifications; ``before`` is the cursor of the next one, if any."""

    notifications: list[Notification]
    before: str | None


def account_topic(account_id: str) -> str:
    """Published when an account's notifications have changed."""
    return f"notifications {account_id}"


async def notify(
    session: AsyncSession,
    account_ids: Iterable[str],
    kind: NotificationKind,
    subject: str,
    actor_id: str | None = None,
    *,
    again: bool = False,
) -> None:
    """Notify accounts, each at most once per kind and subject. ``actor_id`` is the account that caused it.

    ``again``: something new happened to the subject, so whoever has read their notification gets it once more.
    """
    wanted = set(account_ids) - {actor_id}
    if not wanted:
        return
    live = select(Account.id).where(Account.id.in_(wanted), Account.disabled_at.is_(None)).order_by(Account.id)
    about = {"kind": kind, "subject": subject, "actor_id": actor_id, "created_at": now()}
    rows = [{"id": sortable_id(), "account_id": account_id, **about} for account_id in await session.scalars(live)]
    if rows:
        new = dialect_insert(session, Notification).values(rows)
        if again:
            latest = {name: new.excluded[name] for name in ("id", "actor_id", "created_at")}
            new = new.on_conflict_do_update(
                index_elements=["account_id", "kind", "subject"],
                set_={**latest, "read_at": None, "emailed_at": None},
                where=Notification.read_at.is_not(None),
            )
        else:
            new = new.on_conflict_do_nothing()
        for account_id in await session.scalars(new.returning(Notification.account_id)):
            publish_on_commit(session, account_topic(account_id))
            publish_on_commit(session, MAILER_TOPIC)


async def notified_accounts(session: AsyncSession, subject: str) -> dict[str, str]:
    """The accounts notified of a subject, with the kind."""
    told = select(Notification.account_id, Notification.kind).where(Notification.subject == subject)
    return {row.account_id: row.kind for row in await session.execute(told)}


async def delete_notifications(session: AsyncSession, subject: str) -> None:
    """Delete all notifications of a subject that was removed."""
    await withdraw_emails(session, Notification.subject == subject)
    gone = delete(Notification).where(Notification.subject == subject).returning(Notification.account_id)
    for account_id in await session.scalars(gone):
        publish_on_commit(session, account_topic(account_id))


async def withdraw_emails(session: AsyncSession, about: ColumnElement[bool]) -> None:
    """Take back unsent emails about some notifications. The mailer writes them again, without what is gone.

    They quote comments and name people, and wait for hours if the mail server is away. One that is being sent may
    arrive, so it is not written again; if it does not arrive, no second attempt follows.
    """
    quoting = and_(OutboxEmail.account_id == Notification.account_id, OutboxEmail.created_at == Notification.emailed_at)
    unsent = OutboxEmail.state.in_((EmailState.waiting, EmailState.sending))
    found = select(OutboxEmail.id).join(Notification, quoting).where(unsent, about)
    withdrawn = delete(OutboxEmail).where(OutboxEmail.id.in_(found), unsent)
    columns = (OutboxEmail.account_id, OutboxEmail.created_at, OutboxEmail.state)
    for account_id, at, state in (await session.execute(withdrawn.returning(*columns))).all():
        if state == EmailState.waiting:
            again = update(Notification).where(Notification.account_id == account_id, Notification.emailed_at == at)
            await session.execute(again.values(emailed_at=None).execution_options(synchronize_session=False))
            publish_on_commit(session, MAILER_TOPIC)


async def erase_notifications(session: AsyncSession, account: Account) -> None:
    """Let no email name the account that has not been sent yet. Its own notifications are erased with its row."""
    await withdraw_emails(session, Notification.actor_id == account.id)


async def unread_count(session: AsyncSession, account_id: str) -> int:
    """The number of unread notifications, up to ``MAX_COUNTED``."""
    return await session.scalar(_COUNT, {"account": account_id}) or 0


async def list_notifications(session: AsyncSession, account_id: str, before: str | None = None) -> NotificationPage:
    """The latest notifications, or those before a cursor."""
    mine = select(Notification).where(Notification.account_id == account_id)
    if before is not None:
        mine = mine.where(Notification.id < before)
    found = list(await session.scalars(mine.order_by(Notification.id.desc()).limit(PAGE_SIZE + 1)))
    shown = found[:PAGE_SIZE]
    return NotificationPage(shown, shown[-1].id if len(found) > PAGE_SIZE else None)


async def get_notification(session: AsyncSession, account_id: str, notification_id: str) -> Notification | None:
    """The account's notification with this ID, if it exists."""
    mine = (Notification.id == notification_id, Notification.account_id == account_id)
    return await session.scalar(select(Notification).where(*mine))


async def find_unread(session: AsyncSession, account_id: str, kind: NotificationKind, subject: str) -> str | None:
    """The ID of the account's unread notification of a subject, if there is one."""
    mine = select(Notification.id).filter_by(account_id=account_id, kind=kind, subject=subject, read_at=None)
    return await session.scalar(mine)


async def mark_read(session: AsyncSession, account_id: str, notification_id: str | None = None) -> None:
    """Mark one notification or all of them as read."""
    unread = update(Notification).where(Notification.account_id == account_id, Notification.read_at.is_(None))
    if notification_id is not None:
        unread = unread.where(Notification.id == notification_id)
    await session.execute(unread.values(read_at=now()).execution_options(synchronize_session=False))
    publish_on_commit(session, account_topic(account_id))


async def delete_expired(session: AsyncSession) -> bool:
    """Delete some old notifications; True if there may be more."""
    return (
        await delete_batch(session, Notification, _CLEANUP_BATCH, Notification.created_at < now() - RETENTION)
        == _CLEANUP_BATCH
    )


# --- emails -----------------------------------------------------------------------------------------------------------


async def email_opt_outs(session: AsyncSession, account_id: str) -> list[NotificationKind]:
    """The kinds that an account gets no emails about, in their order."""
    refused = set(await session.scalars(select(EmailOptOut.kind).where(EmailOptOut.account_id == account_id)))
    return [kind for kind in NotificationKind if kind in refused]


async def opt_out_of_emails(session: AsyncSession, account_id: str, kind: NotificationKind | None) -> None:
    """Stop emails about a kind, or all notification emails. Idempotent."""
    if kind is None:
        await session.execute(
            update(Account).where(Account.id == account_id).values(email_frequency=EmailFrequency.never)
        )
        return
    refused = dialect_insert(session, EmailOptOut).values(account_id=account_id, kind=kind)
    await session.execute(refused.on_conflict_do_nothing())


async def opt_in_to_emails(session: AsyncSession, account_id: str, kind: NotificationKind) -> None:
    """Send emails about a kind again."""
    await session.execute(delete(EmailOptOut).filter_by(account_id=account_id, kind=kind))


async def export_notifications(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """An account's notifications and opt-outs. They are erased with its row."""
    mine = select(Notification).where(Notification.account_id == account.id).order_by(Notification.id)
    async for row in stream_scalars(session, mine):
        yield {name: getattr(row, name) for name in _EXPORTED_FIELDS}
    for kind in await email_opt_outs(session, account.id):
        yield {"kind": "no_mail", "about": kind}
