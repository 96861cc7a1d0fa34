"""The mails of accounts. None of them is sent where its reader has not asked for it, or somebody in their name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from app.accounts.links import Purpose, make_link
from app.accounts.models import Account, MailLink
from app.accounts.ways_in import WayIn
from app.mail.letter import Mail
from app.mail.models import OutboxMail
from app.mail.outbox import TOPIC, post

_FOLDER = "accounts/mail"
_TO_THE_OLD = "address_changed.html"
"""Whoever has lost an account learns it, whatever its thief does next."""


class Postman:
    """Writes mails for one request: it knows how links to this site begin."""

    def __init__(self, request: Request) -> None:
        self._app = request.app
        self._base = site_url(request)

    async def link(self, session: AsyncSession, account: Account, purpose: Purpose, email: str) -> None:
        """A link to ``email`` that does what it is for."""
        token = await make_link(session, account, purpose, email)
        url = self._url("mail_link_page", account.language, token=token)
        await self._post(session, email, account, f"{purpose}.html", url=url)

    async def already(self, session: AsyncSession, account: Account) -> None:
        """Somebody asked for an account with an address that has one."""
        urls = {"url": self._url("sign_in_page", account.language)}
        urls["forgotten_url"] = self._url("forgotten_page", account.language)
        await self._post(session, account.email, account, "already.html", **urls)

    async def changed(
        self, session: AsyncSession, account: Account, what: str, to: str, ways: Sequence[WayIn] = ()
    ) -> None:
        """Another password (``password``) or address (``address``), or one more passkey or site (``ways_in``).

        ``ways``: what opens the account as before.
        """
        facts = {"url": self._url("forgotten_page", account.language), "ways": [way.name for way in ways]}
        facts["security_url"] = self._url("security_page", account.language)
        await self._post(session, to, account, f"{what}_changed.html", **facts)

    def wake(self) -> None:
        """Have what was posted sent at once; call it after the commit."""
        self._app.state.bus.wake(TOPIC)

    def _url(self, route: str, lang: str, **parts: str) -> str:
        return f"{self._base}{self._app.url_path_for(route, lang=lang, **parts)}"

    async def _post(self, session: AsyncSession, to: str, account: Account, template: str, **values: Any) -> None:
        name = account.name if account.email_confirmed_at else ""  # else a stranger to the reader may have typed it
        facts = {"name": name, "email": account.email, **values}
        about = None if template == _TO_THE_OLD else account.id
        await post(session, Mail(to, account.language, f"{_FOLDER}/{template}", facts, about))


async def still_wanted(session: AsyncSession, mail: OutboxMail) -> bool:
    """Whether a mail may go out by now: not about an account that is gone or shut, nor to an address that it has left.

    To an address that it is to have, while the link that was sent there is open.
    """
    if mail.account_id is None:
        return True
    account = await session.get(Account, mail.account_id)
    if account is None or account.disabled_at is not None:
        return False
    moving = select(MailLink.token_hash).filter_by(account_id=account.id, purpose=Purpose.change, email=mail.to)
    return account.email == mail.to or await session.scalar(moving.where(MailLink.used_at.is_(None))) is not None


def site_url(request: Request) -> str:
    """What an address of this site begins with. Empty where only the request says, and anyone may have written that."""
    state = request.app.state
    if state.settings.public_url:
        return str(state.settings.public_url)
    return str(request.base_url).rstrip("/") if state.only_local else ""
