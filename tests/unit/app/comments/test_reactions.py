"""Reactions to comments, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from app.accounts.models import Account
from app.comments import moderation, reactions
from app.comments.errors import OwnCommentForbidden
from app.comments.models import ReactionKind
from tests.factories.comments import Commenters


async def test_a_reaction_counts_once_whatever_is_pressed(people: Commenters) -> None:
    root = await people.write(people.ada)

    async def press(account: Account, on: bool) -> None:
        async with people.db.writing() as session:
            await reactions.set_reaction(session, account, root.id, ReactionKind.helpful, on=on)

    await asyncio.gather(*(press(account, True) for account in (people.bob, people.teacher) for _ in range(5)))
    assert (await people.read(root)).helpful_count == 2
    await asyncio.gather(*(press(people.bob, False) for _ in range(5)))
    assert (await people.read(root)).helpful_count == 1


async def test_nobody_reacts_to_or_reports_what_is_their_own(people: Commenters) -> None:
    root = await people.write(people.ada)
    async with people.db.session() as session:
        with pytest.raises(OwnCommentForbidden):
            await reactions.set_reaction(session, people.ada, root.id, ReactionKind.helpful, on=True)
        with pytest.raises(OwnCommentForbidden):
            await moderation.report_comment(session, people.ada, root.id, "It is mine")
