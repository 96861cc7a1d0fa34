"""The account menu at the end of the top bar, with the bell, or the link to sign in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts import flash
from app.accounts.models import Account
from app.accounts.page_pieces import PagePiece, PageViewer
from app.web.cookies import Cookies
from app.web.forms import local_path

MAX_URL_CHARACTERS = 2000


def menu_context(account: Account | None, cookies: Cookies, page_url: str) -> dict[str, Any]:
    """The context of ``accounts/menu.html`` but for the bell. Takes the browser's flash messages."""
    back = _return_path(page_url[:MAX_URL_CHARACTERS])
    return {"account": account, "next": back, "flash_messages": flash.pop(cookies)}


def _return_path(address: str) -> str:
    """The path to return to after signing in; empty if the URL is an account page or not on this site. Pure."""
    try:
        url = urlsplit(address)
    except ValueError:
        return ""
    if url.path.split("/")[2:3] in (["sign-in"], ["sign-up"], ["password-reset"], ["email-link"]):
        return ""
    return local_path(f"{url.path}?{url.query}" if url.query else url.path) or ""


def _values(viewer: PageViewer) -> Hashable | None:
    """None if the browser has flash messages, which it sees once."""
    if flash.is_waiting(viewer.cookies):
        return None
    account = viewer.account
    return (account.name, account.handle, account.role) if account else viewer.page_url[:MAX_URL_CHARACTERS]


async def _render(_session: AsyncSession, viewer: PageViewer, before: Mapping[str, Markup]) -> Markup:
    context = menu_context(viewer.account, viewer.cookies, viewer.page_url)
    return viewer.render("accounts/menu.html", **context, bell=before["bell"])


MENU_PIECE = PagePiece(name="menu", target=".bar .account", values=_values, render=_render)
