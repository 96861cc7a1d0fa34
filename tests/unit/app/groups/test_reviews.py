"""The reviews of a group on both databases: the reviewers, and how much waits for them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update

from app.accounts.models import Account, Role
from app.db import Database, now
from app.exercises.models import Review, ReviewState
from app.groups.models import Group, GroupMember, GroupRole
from app.groups.reviews import WaitingReviews, count_waiting, find_review_groups, find_reviewers
from tests.factories.accounts import store_account


async def test_what_waits_is_counted_for_those_who_review_it(database: Database) -> None:
    grace, ada, helper, former = [
        await store_account(database, role, name=name)
        for name, role in (
            ("Grace", Role.instructor),
            ("Ada", Role.learner),
            ("Helper", Role.learner),
            ("Former", Role.learner),
        )
    ]
    roles = {grace: "instructor", ada: "learner", helper: "assistant", former: "instructor"}
    async with database.writing() as session:
        session.add_all(
            Group(id=group, name=group.upper(), course="small", time_zone="UTC", created_at=now()) for group in "ab"
        )
        await session.flush()
        for account, role in roles.items():
            member = {"account_id": account.id, "role": role, "joined_at": now(), "accepts_reminders": False}
            session.add(GroupMember(group_id="a", note="", **member))
        facts: dict[str, Any] = {
            "account_id": ada.id,
            "lesson": "small/first",
            "exercise": "double",
            "code": "x",
            "output": "",
        }
        facts |= {"results": "[]", "remark": "", "requested_at": now()}
        states = {"1": ReviewState.waiting, "2": ReviewState.waiting, "3": ReviewState.withdrawn}
        session.add_all(Review(id=one, run_id=one, group_id="a", state=state, **facts) for one, state in states.items())
        session.add(Review(id="4", run_id="4", group_id="b", state=ReviewState.waiting, **facts))

    async with database.session() as session:
        assert set(await find_reviewers(session, "a")) == {grace.id, helper.id}
        assert list(await find_reviewers(session, "b")) == []
        for reviewer in (grace, helper):
            assert await count_waiting(session, reviewer.id, ["a", "b"]) == [WaitingReviews("a", "A", 2)]
        for other in (ada, former):
            assert await count_waiting(session, other.id, ["a", "b"]) == []
        assert [group.id for group in await find_review_groups(session, ada.learner_id, "small")] == ["a"]
    async with database.writing() as session:
        await session.execute(update(Account).where(Account.id == helper.id).values(disabled_at=now()))
        await session.execute(update(GroupMember).filter_by(account_id=grace.id).values(role=GroupRole.learner))
    async with database.session() as session:
        assert list(await find_reviewers(session, "a")) == []
        assert list(await find_review_groups(session, ada.learner_id, "small")) == []
