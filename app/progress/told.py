"""What a notification says about an achievement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account
from app.notifications.views import About
from app.progress.rulebook import RuleBook


class AchievementsSaid:
    """Describes achievements by id, as far as there still are such."""

    def __init__(self, rulebook: RuleBook) -> None:
        self._rulebook = rulebook

    async def __call__(self, _session: AsyncSession, _account: Account, ids: Sequence[str]) -> Mapping[str, About]:
        lang = i18n.current()
        return {
            rule.id: About(rule.title.get(lang) or rule.title[i18n.DEFAULT], "", "achievements", {})
            for rule in self._rulebook.rules
            if rule.id in ids
        }
