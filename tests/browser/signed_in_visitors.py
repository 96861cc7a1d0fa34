"""People with accounts, each in their own browser: accounts are stored directly in the site's database."""

from __future__ import annotations

import secrets
from functools import cache
from typing import Unpack

from argon2 import PasswordHasher
from argon2.profiles import RFC_9106_LOW_MEMORY
from playwright.async_api import Page

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Account, Role
from app.accounts.service import create_account
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import Database
from tests.browser.conftest import Visitor, VisitorFactory, Window
from tests.browser.site import Site
from tests.factories.accounts import store_account

PASSWORD = "correct horse battery"


@cache
def _hash() -> str:
    """Hash with the parameters of the site, which would otherwise hash the password again."""
    return PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY).hash(PASSWORD)


async def store_account_with_password(site: Site, name: str = "Ada Byron") -> str:
    """Store an account with the password ``PASSWORD``. Returns its email address."""
    address = f"ada-{secrets.token_hex(4)}@example.org"
    db = Database(site.database)
    async with db.writing() as session:
        await create_account(session, email=address, name=name, password_hash=_hash(), confirmed=True)
    await db.close()
    return address


async def sign_in(page: Page, site: Site, address: str) -> None:
    """Sign in with ``PASSWORD`` in the form, and wait for the front page."""
    await page.goto(site.url("/en/sign-in"))
    await page.locator("#field-email").fill(address)
    await page.locator("#field-password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url(site.url("/en/"))


async def lose_cookies(visitor: Visitor) -> None:
    """Forget the visitor's cookies after their pages were left.

    A page that notices that its account is gone loads itself again. Where a test opens the next page at that moment,
    one of the two navigations ends the other with ERR_ABORTED.
    """
    for page in visitor.context.pages:
        await page.goto("about:blank")
    await visitor.context.clear_cookies()


async def admit_signed_in(
    hall: VisitorFactory, name: str, role: Role = Role.learner, **window: Unpack[Window]
) -> tuple[Visitor, Account]:
    """Create a visitor who is signed in."""
    visitor = await hall.admit(**window)
    db = Database(visitor.site.database)
    account = await store_account(db, role, name=name)
    async with db.writing() as session:
        token = await create_auth_session(
            session, account, method="password", user_agent="A test", ip_address="127.0.0.1"
        )
    await db.close()
    await visitor.context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": visitor.site.url("/")}])
    return visitor, account


async def switch_account(visitor: Visitor, owner: Visitor) -> None:
    """Replace a visitor's cookies by another person's, as if they had signed in there."""
    await lose_cookies(visitor)
    for theirs in await owner.context.cookies():
        await visitor.context.add_cookies(
            [
                {
                    "name": theirs["name"],
                    "value": theirs["value"],
                    "domain": theirs["domain"],
                    "path": theirs["path"],
                    "httpOnly": theirs["httpOnly"],
                    "sameSite": theirs["sameSite"],
                }
            ]
        )
