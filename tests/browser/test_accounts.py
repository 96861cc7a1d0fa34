"""Accounts in a real browser: by mouse and by keyboard, with and without scripts, in every theme."""

from __future__ import annotations

import asyncio
import re
import secrets

import pyotp
import pytest
from playwright.async_api import Page, expect

from app.accounts.second_factor import RECOVERY_CODES
from tests.browser.accessibility import (
    DESK,
    PHONE,
    assert_accessible_everywhere,
    assert_fits,
    assert_fits_phones_in,
)
from tests.browser.conftest import Visitor, VisitorFactory
from tests.browser.signed_in_visitors import PASSWORD, sign_in, store_account_with_password
from tests.browser.site import Site
from tests.browser.test_pages import COURSE

REFUSED = "status of 422"
_LINK = re.compile(r"/(?:en|ko|zh)/email-link/[A-Za-z0-9_-]{43}")


async def link_in_the_log(site: Site, address: str) -> str:
    """The path of the latest link for an address: this site has no mail server."""
    async with asyncio.timeout(20):
        while True:
            lines = [line for line in site.log().splitlines() if address in line and _LINK.search(line)]
            if lines:
                return str(_LINK.findall(lines[-1])[-1])
            await asyncio.sleep(0.1)


async def sign_up(visitor: Visitor, page: Page, lang: str = "en") -> str:
    """Create an account and activate it in the browser. Returns its email address."""
    address = f"ada-{secrets.token_hex(4)}@example.org"
    await page.goto(visitor.site.url(f"/{lang}/sign-up"))
    await expect(page.locator("#field-name")).to_be_focused()
    await page.keyboard.type("Ada Byron")
    await page.keyboard.press("Tab")
    await page.keyboard.type(address)
    await page.keyboard.press("Tab")
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text(address)).to_be_visible()
    await page.goto(visitor.site.url(await link_in_the_log(visitor.site, address)))
    await expect(page.locator("main form button")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.wait_for_url(visitor.site.url(f"/{lang}/"))
    return address


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_the_keyboard_alone_makes_an_account_signs_out_and_in(hall: VisitorFactory, script: bool) -> None:
    visitor = await hall.admit(script=script)
    page = await visitor.page()
    address = await sign_up(visitor, page)

    await page.goto(visitor.site.url("/en/sign-in"))
    await expect(page.get_by_text("You are signed in as Ada Byron.")).to_be_visible()
    await page.locator("main").get_by_role("button", name="Sign out").press("Enter")
    await page.wait_for_url(visitor.site.url("/en/"))
    await page.goto(visitor.site.url("/en/settings/security"))
    await page.wait_for_url(re.compile("next="))
    await page.locator("#field-email").fill(address)
    await page.locator("#field-password").fill(PASSWORD)
    await page.keyboard.press("Enter")

    await page.wait_for_url(visitor.site.url("/en/settings/security"))
    await expect(page.get_by_role("heading", name="Where you are signed in")).to_be_visible()


@pytest.mark.long
async def test_another_browser_is_signed_out_with_the_password(hall: VisitorFactory) -> None:
    visitor, elsewhere = await hall.admit(), await hall.admit()
    account = await store_account_with_password(visitor.site)
    pages = [await each.page() for each in (visitor, elsewhere)]
    for each, page in zip((visitor, elsewhere), pages, strict=True):
        await sign_in(page, each.site, account)
    page, other = pages
    await page.goto(visitor.site.url("/en/settings/security"))
    await page.locator("#field-sign_ins_password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign out there").click()

    await expect(page.locator(".account-notice, .account-flash")).to_contain_text("That browser was signed out.")
    await expect(page.get_by_role("button", name="Sign out everywhere else")).to_have_count(0)
    await other.goto(elsewhere.site.url("/en/settings/security"))
    await other.wait_for_url(re.compile("sign-in"))


async def test_a_double_click_sends_a_form_once(hall: VisitorFactory) -> None:
    """If the form is sent twice, the second request has the replaced password, and nobody sees the first response."""
    visitor = await hall.admit()
    visitor.tolerated.append(REFUSED)
    page = await visitor.page()
    await sign_in(page, visitor.site, await store_account_with_password(visitor.site))
    await page.goto(visitor.site.url("/en/settings/security"))
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    await page.locator("#field-password").fill(PASSWORD)
    await page.locator("#field-new_password").fill(PASSWORD[::-1])

    await page.get_by_role("button", name="Change password").dblclick()

    await expect(page.locator(".account-notice, .account-flash")).to_contain_text("Your password was changed.")
    assert len([url for url in sent if url.endswith("/password")]) == 1
    await page.locator("#field-password").fill("Incorrect password")
    await page.locator("#field-new_password").fill(PASSWORD)
    await page.get_by_role("button", name="Change password").click()
    await expect(page.get_by_text("Incorrect password.")).to_be_visible()
    assert len([url for url in sent if url.endswith("/password")]) == 2, "the next form is sent again"


async def test_the_bar_says_who_is_signed_in_and_does_not_move(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    await page.goto(visitor.site.url("/en/"))
    before = await page.locator(".bar .account").bounding_box()

    await sign_in(page, visitor.site, await store_account_with_password(visitor.site))

    await expect(page.locator(".account-flash")).to_contain_text("You are signed in.")
    await expect(page.locator("#announcements")).to_contain_text("You are signed in.")
    button = page.get_by_role("button", name="Ada Byron")
    await expect(button).to_be_visible()
    assert await page.locator(".bar .account").bounding_box() == before
    await page.locator(".account-flash").get_by_role("button", name="Close").click()
    await expect(page.locator(".account-flash")).to_have_count(0)
    await button.press("Enter")
    await expect(page.get_by_role("link", name="Settings")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="Settings")).to_be_hidden()


async def test_a_sign_in_leads_back_to_the_lesson_it_was_begun_from(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    address = await store_account_with_password(visitor.site)
    page = await visitor.open(COURSE)
    link = page.locator(".bar").get_by_role("link", name="Sign in")
    await expect(link).to_have_attribute("href", re.compile("next="))

    await link.click()
    await page.wait_for_load_state()  # with the script of the button Show
    await page.locator("#field-email").fill(address)
    await page.locator("#field-password").fill(PASSWORD)
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("#field-password")).to_have_attribute("type", "text")
    await page.locator("main").get_by_role("button", name="Sign in").click()

    await page.wait_for_url(visitor.site.url(COURSE))


async def test_a_mistake_gets_the_focus_and_is_read_with_its_field(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append(REFUSED)
    page = await visitor.open("/en/sign-up")
    await page.locator("#field-name").fill("Ada Byron")
    await page.locator("#field-email").fill("ada@example.org")
    await page.locator("#field-password").fill("123456789012")
    await page.get_by_role("button", name="Create an account").click()

    field = page.locator("#field-password")

    await expect(field).to_be_focused()
    await expect(field).to_have_accessible_description(re.compile("too common"))
    await expect(page.locator("#field-email")).to_have_value("ada@example.org")


async def test_an_app_is_set_up_and_its_code_asked_for_on_accessible_pages(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page, address = await visitor.page(), await store_account_with_password(visitor.site)
    await sign_in(page, visitor.site, address)
    await page.goto(visitor.site.url("/en/settings/security"))
    await page.get_by_role("link", name="Set up · Authenticator app").click()
    await assert_accessible_everywhere(page, "authenticator")
    await page.locator("#field-password").fill(PASSWORD)
    await page.get_by_role("button", name="Set up").click()
    secret = "".join((await page.locator(".totp-key").inner_text()).split())
    await assert_accessible_everywhere(page, "authenticator-secret")
    await page.set_viewport_size(PHONE)
    await assert_fits(page, "the page with the QR code")
    await page.locator("#field-code").fill(pyotp.TOTP(secret).now())
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.locator(".recovery-codes code")).to_have_count(RECOVERY_CODES)
    code = await page.locator(".recovery-codes code").first.inner_text()
    await assert_fits(page, "the page with the recovery codes")
    await page.set_viewport_size(DESK)
    await assert_accessible_everywhere(page, "recovery-codes")
    await page.get_by_role("link", name="I have saved them").click()
    await assert_fits_phones_in("ko", page, [visitor.site.url("/ko/settings/security/authenticator")])
    await page.goto("about:blank")  # the page of an account reloads itself once nobody is signed in
    await page.context.clear_cookies()
    await page.set_viewport_size(DESK)

    await page.goto(visitor.site.url("/en/sign-in?next=/en/settings"))
    await page.locator("#field-email").fill(address)
    await page.locator("#field-password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.locator("#field-code")).to_be_focused()
    await assert_accessible_everywhere(page, "second-step")
    await page.locator("#field-code").fill(code)
    await page.keyboard.press("Enter")

    await page.wait_for_url(visitor.site.url("/en/settings"))


async def test_axe_finds_nothing_on_pages_of_accounts(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("status of 404")
    page = await visitor.page()
    outside = ("sign-in", "sign-up", "password-reset", "email-link/nothing")
    inside = ("settings", "settings/security", "settings/data", "settings/tokens")
    for name in outside:
        await page.goto(visitor.site.url(f"/en/{name}"))
        await assert_accessible_everywhere(page, name)
    await assert_fits_phones_in("ko", page, [visitor.site.url(f"/ko/{name}") for name in outside])
    await page.set_viewport_size(DESK)

    await sign_in(page, visitor.site, await store_account_with_password(visitor.site))
    await expect(page.locator(".account-flash")).to_be_visible()
    await assert_accessible_everywhere(page, "signed in", ".account-flash")
    await page.locator(".account-flash button").click()
    await page.locator("button.account-button").click()
    await assert_accessible_everywhere(page, "the menu of an account", "#account-menu")
    for name in inside:
        await page.goto(visitor.site.url(f"/en/{name}"))
        await assert_accessible_everywhere(page, name)
    await assert_fits_phones_in("ko", page, [visitor.site.url(f"/ko/{name}") for name in inside])


@pytest.mark.long
async def test_a_token_is_created_with_the_keyboard_and_shown_where_it_can_be_read(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    await sign_in(page, visitor.site, await store_account_with_password(visitor.site))
    await page.goto(visitor.site.url("/en/settings/tokens"))

    await page.locator("#field-name").fill("Backup of my progress")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Space")
    await page.locator("#field-password").fill(PASSWORD)
    await page.keyboard.press("Enter")

    await expect(page.locator("#token")).to_have_value(re.compile(r"^lockstep_[\w-]{43}$"))
    await assert_accessible_everywhere(page, "a new token")
    await page.locator("a.button.primary").click()
    await expect(page.locator(".sign-ins li")).to_contain_text("Backup of my progress")
    await assert_accessible_everywhere(page, "a list of tokens")
