"""Notifications as templates need them. Features describe their own subjects: see ``Describer``."""

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
    """A notification's subject, as far as the notified account may see it."""

    title: str
    text: str
    """The beginning of the subject as plain text; empty if there is nothing to quote."""
    route: str
    """The name of the route that shows the subject, without its language."""
    route_params: Mapping[str, str]
    anchor: str = ""


Describer = Callable[[AsyncSession, Account, Sequence[str]], Awaitable[Mapping[str, NotificationContent]]]
"""Describes subjects in the current language. Leaves out those that the account may not see."""
Describers = Mapping[NotificationKind, Describer]
DESCRIBERS = AppKey[Describers]("describers")
DescribersDep = Annotated[Describers, Depends(DESCRIBERS.from_request)]


@dataclass(frozen=True, slots=True)
class NotificationView:
    """A notification on a page or in an email."""

    notification: Notification
    actor: Account | None
    content: NotificationContent | None
    """None if the subject was removed or may not be seen."""

    @property
    def headline(self) -> str:
        """What happened, in the current language, without user-written text: the subject of an email."""
        match NotificationKind(self.notification.kind):
            case NotificationKind.reply:
                return gettext("New reply in one of your threads")
            case NotificationKind.mention:
                return gettext("You were mentioned in a comment")
            case NotificationKind.answered:
                return gettext("Your question was answered")
            case NotificationKind.review:
                return gettext("Your code was reviewed")
            case NotificationKind.review_request:
                return gettext("Code is waiting for your review")
            case NotificationKind.achievement:
                return gettext("You earned a new achievement")

    @property
    def summary(self) -> str:
        """What happened, in the current language."""
        name = self.actor.name if self.actor else gettext("Someone")
        match NotificationKind(self.notification.kind):
            case NotificationKind.reply:
                return gettext("%(name)s replied in one of your threads") % {"name": name}
            case NotificationKind.mention:
                return gettext("%(name)s mentioned you") % {"name": name}
            case NotificationKind.answered:
                return gettext("%(name)s marked a reply as the answer to your question") % {"name": name}
            case NotificationKind.review:
                return gettext("%(name)s reviewed your code") % {"name": name}
            case NotificationKind.achievement if self.content:
                return gettext("You earned an achievement: %(title)s") % {"title": self.content.title}
            case NotificationKind.review_request | NotificationKind.achievement:
                return self.headline  # nobody in particular has caused it

    @property
    def place(self) -> str:
        """Where it happened; empty if the summary says it all."""
        if self.content is None or self.notification.kind == NotificationKind.achievement:
            return ""
        return self.content.title


async def build_views(
    session: AsyncSession, describers: Describers, account: Account, rows: Sequence[Notification]
) -> list[NotificationView]:
    """The views of an account's notifications, in their order."""
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
