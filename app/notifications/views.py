"""Notifications as templates want them. What each is about is said by the feature that knows: see ``Describer``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.i18n import gettext
from app.notifications.models import Notification, NotificationKind
from app.web.dependencies import AppKey


@dataclass(frozen=True, slots=True)
class NotificationContent:
    """What a notification is about, as far as the account that is told may see it."""

    title: str
    text: str
    """How it begins, as plain text; empty where there is nothing to quote."""
    route: str
    """The page to look at it on, by name; in which language is filled in."""
    parts: Mapping[str, str]
    anchor: str = ""


Describer = Callable[[AsyncSession, Account, Sequence[str]], Awaitable[Mapping[str, NotificationContent]]]
"""Says what some subjects are about, in the language in use. Those that the account may not see are missing."""
Describers = Mapping[NotificationKind, Describer]
DESCRIBERS = AppKey[Describers]("describers")
DescribersDep = Annotated[Describers, Depends(DESCRIBERS.from_request)]


@dataclass(frozen=True, slots=True)
class NotificationView:
    """A notification on a page or in a mail."""

    notification: Notification
    actor: Account | None
    about: NotificationContent | None
    """None: it is gone or out of sight."""

    @property
    def headline(self) -> str:
        """What happened, in the language in use, without anything that a learner wrote: a subject of a mail."""
        match NotificationKind(self.notification.kind):
            case NotificationKind.reply:
                return gettext("New reply in one of your threads")
            case NotificationKind.mention:
                return gettext("You were mentioned in a comment")
            case NotificationKind.answered:
                return gettext("Your question was answered")
            case NotificationKind.achievement:
                return gettext("You earned a new achievement")

    @property
    def sentence(self) -> str:
        """What happened, in the language in use."""
        name = self.actor.name if self.actor else gettext("Someone")
        match NotificationKind(self.notification.kind):
            case NotificationKind.reply:
                return gettext("%(name)s replied in one of your threads") % {"name": name}
            case NotificationKind.mention:
                return gettext("%(name)s mentioned you") % {"name": name}
            case NotificationKind.answered:
                return gettext("%(name)s marked a reply as the answer to your question") % {"name": name}
            case NotificationKind.achievement:
                return gettext("You earned a new achievement")


async def build_views(
    session: AsyncSession, describers: Describers, account: Account, rows: Sequence[Notification]
) -> list[NotificationView]:
    """The views of some notifications of an account, in their order."""
    ids = {row.actor_id for row in rows if row.actor_id}
    actors = {account.id: account for account in await session.scalars(select(Account).where(Account.id.in_(ids)))}
    about: dict[tuple[str, str], NotificationContent] = {}
    for describer in dict.fromkeys(describers.values()):
        kinds = [kind for kind, own in describers.items() if own == describer]
        subjects = list(dict.fromkeys(row.subject for row in rows if row.kind in kinds))
        if subjects:
            said = await describer(session, account, subjects)
            about |= {(kind, subject): words for kind in kinds for subject, words in said.items()}
    return [NotificationView(row, actors.get(row.actor_id or ""), about.get((row.kind, row.subject))) for row in rows]
