"""Reminders that wait in the outbox while the account that wrote them is deleted."""

from __future__ import annotations

from sqlalchemy import select

from app.accounts.models import Role
from app.accounts.personal_data import erase_account
from app.accounts.signing import Signer
from app.db import Database, now
from app.groups.feature import FEATURE
from app.groups.models import Group, GroupMember, GroupRole
from app.groups.permissions import Staff
from app.groups.reminders import ReminderMailer
from app.mail.models import OutboxEmail
from app.mail.outbox import claim
from tests.factories.accounts import store_account


async def test_no_unsent_reminder_names_an_account_that_was_deleted(database: Database) -> None:
    grace, tess = [await store_account(database, Role.instructor, name=name) for name in ("Grace", "Tess")]
    ada, bob, carol = [await store_account(database, name=name) for name in ("Ada", "Bob", "Carol")]
    mailer = ReminderMailer(Signer([b"secret"]), lambda route, **_parts: f"/{route}", "http://test", enabled=True)
    group = Group(id="a", name="Autumn", course="small", time_zone="UTC", created_at=now())
    async with database.writing() as session:
        session.add(group)
        await session.flush()
        for learner in (ada, bob, carol):
            facts = {"account_id": learner.id, "role": GroupRole.learner, "joined_at": now(), "note": ""}
            session.add(GroupMember(group_id="a", accepts_reminders=True, **facts))

    async def remind(sender: Staff, *learners: str) -> None:
        for learner in learners:
            async with database.writing() as session:
                await mailer.send(session, sender, learner, "Come back.\n\nStop these emails:\nno")

    async def reminded() -> set[str]:
        async with database.session() as session:
            there = select(GroupMember.account_id).where(GroupMember.reminded_at.is_not(None))
            return set(await session.scalars(there))

    await remind(Staff(group, grace, GroupRole.instructor), ada.id, bob.id)
    await remind(Staff(group, tess, GroupRole.instructor), carol.id)
    sending = await claim(database)
    assert sending is not None
    assert "Grace sent you this reminder about your course in the group Autumn." in sending.text
    quoted = "\n\n> Come back.\n> \n> Stop these emails:\n> no\n\n"
    assert quoted in sending.text, "no line of a message can be taken for ours"

    async with database.writing() as session:
        await erase_account(session, grace, FEATURE.erasers)

    async with database.session() as session:
        (left,) = await session.scalars(select(OutboxEmail))
    assert left.account_id == carol.id
    assert await reminded() == {ada.id, carol.id}, "what may be on its way counts"
    await remind(Staff(group, tess, GroupRole.instructor), bob.id)
    assert await reminded() == {ada.id, bob.id, carol.id}
