"""What all admin pages share: how they are rendered, and who has confirmed a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from app import i18n
from app.accounts import flash
from app.accounts.dependencies import RoleRequired, SignedIn
from app.accounts.models import Role
from app.accounts.routes import account_page, lock_for_sensitive_change
from app.accounts.settings_routes import reauthenticate
from app.admin.audit import Actor
from app.admin.people import lock_admins
from app.errors import LockstepError
from app.web.cookies import request_cookies
from app.web.security_headers import NO_STORE

PASSWORD_FIELD = "password"  # noqa: S105 - the name of a field


def admin_page(
    request: Request, template: str, signed_in: SignedIn | None, failure: LockstepError | None = None, /, **context: Any
) -> HTMLResponse:
    """An admin page, which is never cached. ``signed_in``: whose identity its forms confirm, if it has such a form."""
    facts = {"admin": signed_in.account, "logged_in_recently": signed_in.recently} if signed_in else {}
    return account_page(request, template, failure, **facts, **context)


async def confirm_identity(request: Request, signed_in: SignedIn, form: Mapping[str, str]) -> None:
    """Check the admin's password or recent sign-in before a sensitive change.

    Raises InvalidFields or TooManyAttempts.
    """
    await reauthenticate(request, signed_in, form, PASSWORD_FIELD)


async def lock_actor(request: Request, session: AsyncSession) -> Actor:
    """Lock the admin in the transaction of a sensitive change, and check again that they are one.

    Raises RoleRequired, and what ``lock_signed_in_account`` raises.
    """
    await lock_admins(session)
    account = await lock_for_sensitive_change(request, session)
    if account.role != Role.admin:
        raise RoleRequired
    return Actor.of(account)


def redirect_to_page(request: Request, what: str, route: str, **parts: str) -> RedirectResponse:
    """Redirect to an admin page, which says what was done."""
    flash.add(request_cookies(request), what)
    return RedirectResponse(str(request.app.url_path_for(route, lang=i18n.current_language(), **parts)), 303, NO_STORE)
