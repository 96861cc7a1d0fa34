"""The emails of accounts. Each was requested by its reader, or by somebody using the reader's address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.auth_methods import AuthMethod
from app.accounts.email_links import LinkPurpose, create_link
from app.accounts.models import Account, EmailLink
from app.mail.models import OutboxEmail
from app.mail.outbox import enqueue
from app.mail.renderer import TemplatedEmail

_TEMPLATE_DIR = "accounts/mail"
_SENT_TO_OLD_ADDRESS = "address_changed.html"
"""Sent even if the account is disabled or deleted afterwards: the owner must learn of a takeover."""


class AccountMailer:
    """Sends account emails with links to this site.

    ``url_path_for`` makes the path of a route. ``base_url`` is what comes before it.
    """

    def __init__(self, url_path_for: Callable[..., str], base_url: str) -> None:
        self._url_path_for = url_path_for
        self._base_url = base_url

    async def send_link(
        self,
        session: AsyncSession,
        account: Account,
        purpose: LinkPurpose,
        email: str,
        next_path: str | None = None,
    ) -> None:
        token = await create_link(session, account, purpose, email, next_path)
        url = self._link_to("email_link_page", account.language, token=token)
        await self._enqueue(session, email, account, f"{purpose}.html", url=url)

    async def send_already_registered(self, session: AsyncSession, account: Account) -> None:
        """Tell the owner that somebody tried to sign up with their address."""
        urls = {"url": self._link_to("sign_in_page", account.language)}
        urls["reset_url"] = self._link_to("password_reset_page", account.language)
        await self._enqueue(session, account.email, account, "already_registered.html", **urls)

    async def send_changed(
        self, session: AsyncSession, account: Account, what: str, to: str, auth_methods: Sequence[AuthMethod] = ()
    ) -> None:
        """Report a new password (``password``) or address (``address``), an added method (``auth_methods``),
        a changed authenticator app (``second_factor``), or a new API token (``api_tokens``).

        ``auth_methods`` lists the other ways to sign in, which still work.
        """
        context = {
            "url": self._link_to("password_reset_page", account.language),
            "auth_methods": [method.name for method in auth_methods],
        }
        context["security_url"] = self._link_to("security_page", account.language)
        await self._enqueue(session, to, account, f"{what}_changed.html", **context)

    def _link_to(self, route: str, lang: str, **parts: str) -> str:
        return f"{self._base_url}{self._url_path_for(route, lang=lang, **parts)}"

    async def _enqueue(self, session: AsyncSession, to: str, account: Account, template: str, **context: Any) -> None:
        name = account.name if account.email_confirmed_at else ""  # before that, a stranger may have typed it
        context |= {"name": name, "email": account.email}
        about = None if template == _SENT_TO_OLD_ADDRESS else account.id
        await enqueue(session, TemplatedEmail(to, account.language, f"{_TEMPLATE_DIR}/{template}", context, about))


async def should_send(session: AsyncSession, mail: OutboxEmail) -> bool:
    """Whether an email may still be sent: its account is active, and the address is still the account's own.

    A pending address also counts, while the link that was sent to it is valid. If the email has a sender, as a reminder
    has, the sender's account must be active, too.
    """
    if mail.sender_id is not None and not await _is_active(session, mail.sender_id):
        return False
    if mail.account_id is None:
        return True
    account = await session.get(Account, mail.account_id)
    if account is None or account.disabled_at is not None:
        return False
    moving = select(EmailLink.token_hash).filter_by(
        account_id=account.id, purpose=LinkPurpose.change, email=mail.recipient
    )
    return (
        account.email == mail.recipient or await session.scalar(moving.where(EmailLink.used_at.is_(None))) is not None
    )


async def _is_active(session: AsyncSession, account_id: str) -> bool:
    active = (Account.id == account_id, Account.disabled_at.is_(None))
    return await session.scalar(select(Account.id).where(*active)) is not None
