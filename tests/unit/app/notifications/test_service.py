"""Operations on notifications, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio

from sqlalchemy import func, select, update

from app.accounts.cleanup import clean_up
from app.accounts.models import Account
from app.accounts.personal_data import erase_account
from app.db import Database, now
from app.notifications import service
from app.notifications.models import Notification, NotificationKind
from app.notifications.views import build_views
from tests.factories.accounts import store_account


async def tell(
    db: Database,
    account: Account,
    subject: str = "c1",
    kind: NotificationKind = NotificationKind.reply,
    actor_id: str | None = None,
) -> None:
    async with db.writing() as session:
        await service.notify(session, [account.id], kind, subject, actor_id)


async def unread(db: Database, account: Account) -> int:
    async with db.session() as session:
        return await service.unread_count(session, account.id)


async def test_nobody_is_notified_twice_or_about_their_own_actions(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database)
    for _ in range(2):
        async with database.writing() as session:
            await service.notify(session, [ada.id, bob.id, "gone"], NotificationKind.reply, "c1", bob.id)
    assert (await unread(database, ada), await unread(database, bob)) == (1, 0)

    await tell(database, ada, "c1", NotificationKind.mention)
    await tell(database, ada, "c2")
    assert await unread(database, ada) == 3


async def test_a_disabled_account_is_not_notified(database: Database) -> None:
    ada = await store_account(database)
    async with database.writing() as session:
        await session.execute(update(Account).values(disabled_at=now()))
    await tell(database, ada)
    assert await unread(database, ada) == 0


async def test_a_report_made_by_several_at_once_is_shown_once(database: Database) -> None:
    ada = await store_account(database)
    await asyncio.gather(*(tell(database, ada) for _ in range(8)))
    assert await unread(database, ada) == 1


async def test_news_of_a_subject_notify_again_whoever_has_read_of_it(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database)

    async def news() -> None:
        async with database.writing() as session:
            people = [ada.id, bob.id]
            await service.notify(session, people, NotificationKind.review_request, "g", again=True)

    await asyncio.gather(*(news() for _ in range(5)))
    assert (await unread(database, ada), await unread(database, bob)) == (1, 1)
    async with database.writing() as session:
        first = await service.find_unread(session, ada.id, NotificationKind.review_request, "g")
        await session.execute(update(Notification).values(emailed_at=now()))
        await service.mark_read(session, ada.id, first)
    await asyncio.gather(*(news() for _ in range(5)))
    assert (await unread(database, ada), await unread(database, bob)) == (1, 1)
    async with database.session() as session:
        emailed = {row.account_id: row.emailed_at is not None for row in await session.scalars(select(Notification))}
        again = await service.find_unread(session, ada.id, NotificationKind.review_request, "g")
    assert emailed == {ada.id: False, bob.id: True}  # nobody is emailed twice before they have read the first
    assert again not in (None, first)


async def test_the_list_goes_on_where_a_page_ends_and_shows_each_once(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database)
    for number in range(2 * service.PAGE_SIZE + 1):
        await tell(database, ada, f"c{number}")
    await tell(database, bob)

    seen, before = [], None
    async with database.session() as session:
        while True:
            listed = await service.list_notifications(session, ada.id, before)
            seen += [row.subject for row in listed.notifications]
            if (before := listed.before) is None:
                break
    assert seen == [f"c{number}" for number in reversed(range(2 * service.PAGE_SIZE + 1))]


async def test_one_or_all_are_marked_as_read_and_never_those_of_others(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database)
    for subject in ("c1", "c2", "c3"):
        await tell(database, ada, subject)
    async with database.writing() as session:
        (latest, *_) = (await service.list_notifications(session, ada.id)).notifications
        await service.mark_read(session, bob.id, latest.id)
        assert await service.unread_count(session, ada.id) == 3
        await service.mark_read(session, ada.id, latest.id)
        assert await service.unread_count(session, ada.id) == 2
        await service.mark_read(session, ada.id)
        assert await service.unread_count(session, ada.id) == 0
        assert await service.get_notification(session, bob.id, latest.id) is None


async def test_counting_stops_at_what_is_shown(database: Database) -> None:
    ada = await store_account(database)
    async with database.writing() as session:
        for number in range(service.MAX_COUNTED + 5):
            await service.notify(session, [ada.id], NotificationKind.reply, f"c{number}")
    assert await unread(database, ada) == service.MAX_COUNTED


async def test_only_pages_of_notified_people_are_woken_and_after_the_commit(database: Database) -> None:
    ada, bob, bus = await store_account(database), await store_account(database), database.bus
    await tell(database, bob)
    with bus.subscribe(service.account_topic(ada.id)) as hers, bus.subscribe(service.account_topic(bob.id)) as his:
        async with database.writing() as session:
            await service.notify(session, [ada.id, bob.id], NotificationKind.reply, "c1")
        assert [await each.wait(0) for each in (hers, his)] == [True, False]


async def test_what_is_withdrawn_is_gone_for_everyone(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database)
    async with database.writing() as session:
        await service.notify(session, [ada.id, bob.id], NotificationKind.reply, "c1")
        await service.delete_notifications(session, "c1")
    assert (await unread(database, ada), await unread(database, bob)) == (0, 0)


async def test_a_deleted_account_leaves_what_it_did_without_a_name_and_nothing_of_its_own(database: Database) -> None:
    ada, bob = await store_account(database), await store_account(database)
    await tell(database, ada, "c1", actor_id=bob.id)
    await tell(database, bob, "c2", actor_id=ada.id)
    async with database.writing() as session:
        await service.opt_out_of_emails(session, bob.id, NotificationKind.reply)
        await erase_account(session, bob, ())
    async with database.session() as session:
        assert await session.scalar(select(func.count()).select_from(Notification)) == 1
        (view,) = await build_views(session, {}, ada, (await service.list_notifications(session, ada.id)).notifications)
    assert view.summary == "Someone replied in one of your threads"


async def test_an_accounts_notifications_are_part_of_its_export(database: Database) -> None:
    ada = await store_account(database)
    await tell(database, ada, "c1")
    async with database.writing() as session:
        await service.opt_out_of_emails(session, ada.id, NotificationKind.mention)
        rows = [row async for row in service.export_notifications(session, ada)]
    assert [(row["kind"], row.get("subject") or row.get("about")) for row in rows] == [
        ("reply", "c1"),
        ("no_mail", "mention"),
    ]


async def test_notifications_older_than_a_year_are_deleted(database: Database) -> None:
    ada = await store_account(database)
    await tell(database, ada, "old")
    async with database.writing() as session:
        await session.execute(update(Notification).values(created_at=now() - service.RETENTION))
    await tell(database, ada, "new")

    await clean_up(database, [service.delete_expired])

    async with database.session() as session:
        assert list(await session.scalars(select(Notification.subject))) == ["new"]
