"""The admin pages in a real browser: accessible, on a phone too, in every language, and one change from end to end."""

from __future__ import annotations

import secrets
from datetime import timedelta

from playwright.async_api import expect

from app.accounts.models import Account, Role
from app.admin import audit
from app.admin.audit import Actor, AuditAction
from app.db import Database, now
from app.mail.models import EmailState, OutboxEmail
from tests.browser.accessibility import assert_accessible_everywhere, assert_fits_phones_in
from tests.browser.conftest import VisitorFactory
from tests.browser.signed_in_visitors import admit_signed_in
from tests.factories.accounts import store_account


async def made_ready(url: str, admin: Account) -> dict[str, str]:
    """Store something to show; returns the admin pages by name."""
    db = Database(url)
    ada = await store_account(db, name="Ada Augusta Byron, Countess of Lovelace")
    async with db.writing() as session:
        await audit.record_action(session, Actor.of(admin), AuditAction.role_changed, ada, "learner → instructor")
        await audit.record_action(session, Actor(None, "root"), AuditAction.account_invited, detail="instructor")
        for state, error in ((EmailState.waiting, "451 try again later"), (EmailState.failed, "550 no such mailbox")):
            email = {"id": secrets.token_hex(16), "recipient": "ada@example.org", "subject": "Confirm your email"}
            moments = {"created_at": now(), "due_at": now() + timedelta(hours=1)}
            session.add(OutboxEmail(text="", html="", state=state, attempts=3, last_error=error, **email, **moments))
    await db.close()
    return {
        "overview": "",
        "people": "/people",
        "person": f"/people/{ada.id}",
        "live": "/live",
        "mail": "/mail",
        "storage": "/storage",
        "maintenance": "/maintenance",
        "audit": "/audit",
    }


async def test_axe_finds_nothing_on_admin_pages_and_they_fit_phones(hall: VisitorFactory) -> None:
    grace, account = await admit_signed_in(hall, "Grace Hopper", Role.admin)
    pages = await made_ready(grace.site.database, account)
    page = await grace.page()
    for name, path in pages.items():
        await page.goto(grace.site.url(f"/en/admin{path}"))
        await expect(page.locator(".settings-nav [aria-current]")).to_have_count(1)
        await assert_accessible_everywhere(page, f"admin {name}")
    for language in ("ko", "zh"):
        await assert_fits_phones_in(
            language, page, [grace.site.url(f"/{language}/admin{path}") for path in pages.values()]
        )


async def test_an_admin_disables_an_account_with_the_keyboard(hall: VisitorFactory) -> None:
    grace, account = await admit_signed_in(hall, "Grace Hopper", Role.admin)
    pages = await made_ready(grace.site.database, account)
    page = await grace.open(f"/en/admin{pages['person']}")
    await page.get_by_role("button", name="Disable the account").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("The account is disabled.").first).to_be_visible()
    await expect(page.get_by_role("button", name="Enable the account")).to_be_visible()
    await expect(page.get_by_role("table", name="What this account did").get_by_role("row")).to_have_count(3)
