"""Reminders: emails that the staff of a group sends to a learner, at most one in three days, unless they refuse.

Every reminder has a signed link that ends them, for people and for mail programs (RFC 8058).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, EmailFrequency
from app.accounts.signing import Signer
from app.db import now
from app.errors import LockstepError
from app.groups.errors import (
    REMINDER_PAUSE,
    EmailNotSetUp,
    GroupNotFound,
    MemberNotFound,
    RemindedLately,
    RemindersRefused,
)
from app.groups.members import find_learner
from app.groups.models import GroupMember
from app.groups.permissions import Staff
from app.mail.models import EmailState, OutboxEmail
from app.mail.outbox import enqueue
from app.mail.renderer import TemplatedEmail
from app.rate_limit import RateLimitPolicy, TooManyAttempts, count_attempt
from app.web.user_text import clean_text

MAX_MESSAGE_LENGTH = 1_000
REMINDERS_PER_SENDER = RateLimitPolicy(free_attempts=60, initial_delay_s=30.0, max_delay_s=300.0)
_PURPOSE = "group reminders"


@dataclass(frozen=True, slots=True)
class ReminderMailer:
    """Puts reminders into the outbox. ``base_url`` comes before a path; ``enabled`` is whether the site has email."""

    signer: Signer
    url_path_for: Callable[..., str]
    base_url: str
    enabled: bool

    async def send(self, session: AsyncSession, staff: Staff, account_id: str, text: str) -> None:
        """Send a reminder, with a text or without.

        Raises MemberNotFound, EmailNotSetUp, RemindersRefused, RemindedLately, TooManyAttempts, or what ``clean_text``
        raises.
        """
        member, account = await find_learner(session, staff.group, account_id)
        if (refusal := self.find_refusal(member, account)) is not None:
            raise refusal
        message = clean_text(text, MAX_MESSAGE_LENGTH) if text.strip() else ""
        await count_attempt(session, f"group reminder account {staff.account.id}", REMINDERS_PER_SENDER)
        reminded_at = await self._claim(session, member)
        await enqueue(session, self._render(staff, account, message), reminded_at)

    async def send_to_several(self, session: AsyncSession, staff: Staff, account_ids: Sequence[str], text: str) -> bool:
        """Send a reminder to each of these learners who can be sent one now. Returns False if the limit left some out.

        Raises the errors of ``send`` about the text and, if nobody can be sent one, the error about the first learner.
        """
        sent = False
        refusals: dict[str, LockstepError] = {}
        for account_id in sorted(account_ids):  # each locks a row: in the same order for all senders
            try:
                await self.send(session, staff, account_id, text)
                sent = True
            except TooManyAttempts:
                if not sent:
                    raise
                return False
            except (MemberNotFound, RemindersRefused, RemindedLately) as e:
                refusals[account_id] = e
        if not sent:
            raise refusals[account_ids[0]] if account_ids else MemberNotFound
        return True

    def find_refusal(self, member: GroupMember, account: Account) -> LockstepError | None:
        """Why a reminder to this learner cannot be sent now; None if it can."""
        if not self.enabled:
            return EmailNotSetUp()
        if not accepts_reminders(member, account):
            return RemindersRefused()
        if member.reminded_at is not None and member.reminded_at > now() - REMINDER_PAUSE:
            return RemindedLately(days=REMINDER_PAUSE.days)
        return None

    async def _claim(self, session: AsyncSession, member: GroupMember) -> datetime:
        """Compare and swap, so that two members of the staff do not both send one. Returns the reminder's time.

        Raises RemindedLately.
        """
        moment = now()
        mine = (GroupMember.group_id == member.group_id, GroupMember.account_id == member.account_id)
        due = GroupMember.reminded_at.is_(None) | (GroupMember.reminded_at <= moment - REMINDER_PAUSE)
        claim = update(GroupMember).where(*mine, due).values(reminded_at=moment).returning(GroupMember.account_id)
        claimed = await session.execute(claim.execution_options(synchronize_session=False))
        if claimed.scalar_one_or_none() is None:
            raise RemindedLately(days=REMINDER_PAUSE.days)
        return moment

    def _render(self, staff: Staff, account: Account, message: str) -> TemplatedEmail:
        lang, group = account.language, staff.group

        def url(route: str, **parts: str) -> str:
            return f"{self.base_url}{self.url_path_for(route, lang=lang, **parts)}"

        values = {"name": account.name, "sender": staff.account.name, "group": group.name, "message": message}
        values |= {"course_url": url("course", course=group.course), "own_url": url("own_group", group_id=group.id)}
        token = self.signer.sign(_PURPOSE, group.id, account.id)
        stop = url("stop_reminders_page", group_id=group.id, account_id=account.id, token=token)
        return TemplatedEmail(
            account.email, lang, "groups/mail/reminder.html", values, account.id, staff.account.id, stop
        )


def accepts_reminders(member: GroupMember, account: Account) -> bool:
    """Pure."""
    reachable = account.email_confirmed_at is not None and account.disabled_at is None
    return member.accepts_reminders and reachable and account.email_frequency != EmailFrequency.never


async def withdraw_reminders(session: AsyncSession, account: Account) -> None:
    """Take back the unsent reminders that the account has written: they name it. Their learners can be reminded again.

    One that is being sent may arrive, so it counts.
    """
    written = delete(OutboxEmail).where(OutboxEmail.sender_id == account.id)
    columns = (OutboxEmail.account_id, OutboxEmail.created_at, OutboxEmail.state)
    for account_id, reminded_at, state in (await session.execute(written.returning(*columns))).all():
        if state == EmailState.waiting:
            reminded = (GroupMember.account_id == account_id, GroupMember.reminded_at == reminded_at)
            await session.execute(update(GroupMember).where(*reminded).values(reminded_at=None))


def verify_stop_link(signer: Signer, group_id: str, account_id: str, token: str) -> None:
    """Raises GroupNotFound if this site did not make the link."""
    if not signer.verify(token, _PURPOSE, group_id, account_id):
        raise GroupNotFound


async def stop_reminders(session: AsyncSession, group_id: str, account_id: str) -> None:
    """End the reminders of one group to one account. Idempotent."""
    mine = (GroupMember.group_id == group_id, GroupMember.account_id == account_id)
    await session.execute(update(GroupMember).where(*mine).values(accepts_reminders=False))
