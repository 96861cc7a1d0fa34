"""How notifications describe achievements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account
from app.lessons.course_file import localized
from app.notifications.views import NotificationContent
from app.progress.achievement_catalog import AchievementCatalog


class AchievementDescriber:
    """Describes achievements by ID; those that no longer exist are left out."""

    def __init__(self, rulebook: AchievementCatalog) -> None:
        self._rulebook = rulebook

    async def __call__(
        self, _session: AsyncSession, _account: Account, ids: Sequence[str]
    ) -> Mapping[str, NotificationContent]:
        lang = i18n.current_language()
        return {
            rule.id: NotificationContent(localized(rule.title, lang), "", "achievements", {})
            for rule in self._rulebook.rules
            if rule.id in ids
        }
