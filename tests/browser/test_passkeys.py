"""Passkeys in a real browser, with Chromium's virtual authenticator."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import CDPSession, Page, Route, expect

from app.accounts.session_cookie import SESSION_COOKIE
from tests.browser.accessibility import DESK, assert_accessible_everywhere, assert_fits_phones_in
from tests.browser.conftest import Visitor, VisitorFactory
from tests.browser.network_control import hold_requests, requests_to
from tests.browser.polling import wait_until
from tests.browser.signed_in_visitors import admit_signed_in, lose_cookies

SECURITY = "/en/settings/security"
OFFERED = """
const get = navigator.credentials.get.bind(navigator.credentials);
navigator.credentials.get = (options) => {
  const found = get(options);
  window.offered = options.mediation === "conditional";
  return found;
};
"""
"""Sets ``window.offered`` once a page has asked the browser to offer passkeys in a field."""


async def device(page: Page) -> tuple[CDPSession, str]:
    """An authenticator that stores passkeys and has verified its user."""
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    made = await cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return cdp, made["authenticatorId"]


def named(visitor: Visitor, path: str) -> str:
    """The URL of a page with the site's host name: passkeys do not work with an IP address."""
    return f"http://{visitor.site.hosts[1]}{path}"


async def at_security(hall: VisitorFactory) -> tuple[Visitor, Page]:
    """A signed-in visitor on the page of passkeys."""
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    held = next(each for each in await visitor.context.cookies() if each.get("name") == SESSION_COOKIE)
    await visitor.context.add_cookies([{"name": SESSION_COOKIE, "value": held["value"], "url": named(visitor, "/")}])
    page = await visitor.page()
    await page.goto(named(visitor, SECURITY))
    return visitor, page


async def add(page: Page, name: str) -> None:
    await expect(page.locator("[data-passkey-new][data-ready]")).to_be_attached()  # until then it sends nothing
    await page.locator("#field-passkey_name").fill(name)
    await page.keyboard.press("Enter")


async def test_a_passkey_is_added_by_keyboard_and_signs_in_from_then_on(hall: VisitorFactory) -> None:
    visitor, page = await at_security(hall)
    cdp, key = await device(page)

    await add(page, "My laptop")

    await expect(page.get_by_text("The passkey was added.").first).to_be_visible()
    await expect(page.get_by_text("My laptop").first).to_be_visible()
    await cdp.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": key, "enabled": False})
    await lose_cookies(visitor)
    await page.add_init_script(OFFERED)
    await page.goto(named(visitor, "/en/sign-in?next=/en/settings/security"))
    await expect(page.locator("#field-email")).to_have_attribute("autocomplete", "username webauthn")
    await wait_until(page, "window.offered")  # one that is offered later would sign in before the press
    await cdp.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": key, "enabled": True})
    await page.get_by_role("button", name="Sign in with a passkey").press("Enter")

    await page.wait_for_url(named(visitor, SECURITY))
    await expect(page.get_by_text("last used").first).to_be_visible()
    credentials = (await cdp.send("WebAuthn.getCredentials", {"authenticatorId": key}))["credentials"]
    assert [each["rpId"] for each in credentials] == ["localhost"]


async def test_two_tabs_that_ask_at_once_share_the_cookie_that_binds_challenges(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    first, second = await visitor.page(), await visitor.page()
    both_ask = asyncio.Event()

    async def hold(route: Route) -> None:
        await both_ask.wait()
        await route.continue_()

    await first.route("**/passkey/options", hold)
    sign_in = named(visitor, "/en/sign-in")
    async with first.expect_request("**/passkey/options"):
        await first.goto(sign_in)
    async with second.expect_response("**/passkey/options") as later:
        await second.goto(sign_in)
        async with first.expect_response("**/passkey/options") as sooner:
            await wait_until(second, "navigator.locks.query().then(({ pending }) => pending.length === 1)")
            both_ask.set()

    cookies = [await (await each.value).header_value("set-cookie") for each in (sooner, later)]
    bound = [re.search("lockstep_auth_challenge=([^;]+)", each or "") for each in cookies]
    assert bound[0] is not None
    assert bound[1] is not None
    assert bound[0][1] == bound[1][1]


async def test_a_device_that_does_not_answer_leaves_the_page_usable_and_says_so(hall: VisitorFactory) -> None:
    visitor, page = await at_security(hall)
    cdp, key = await device(page)
    await add(page, "")
    visitor.tolerated.append("status of 422")
    field = page.locator("#field-passkey_name")
    await expect(field).to_have_accessible_description(re.compile("Enter a name"))
    await expect(field).to_be_focused()
    await cdp.send("WebAuthn.setUserVerified", {"authenticatorId": key, "isUserVerified": False})

    await add(page, "My laptop")

    await expect(page.get_by_role("alert").get_by_text("Your device did not respond.")).to_be_visible()
    await cdp.send("WebAuthn.setUserVerified", {"authenticatorId": key, "isUserVerified": True})
    await add(page, "My laptop")
    await expect(page.get_by_text("The passkey was added.").first).to_be_visible()
    await add(page, "The same one")
    await expect(page.get_by_text("already has a passkey for your account")).to_be_visible()


async def test_without_a_script_or_a_name_no_button_is_dead(hall: VisitorFactory) -> None:
    visitor = await hall.admit(script=False)
    page = await visitor.page()
    await page.goto(named(visitor, "/en/sign-in"))
    await expect(page.get_by_role("button", name="passkey")).to_have_count(0)
    await page.goto(visitor.site.url("/en/sign-in"))
    await page.get_by_role("link", name="Open this page at its host name").click()
    await page.wait_for_url(named(visitor, "/en/sign-in"))


async def test_axe_finds_nothing_on_pages_of_passkeys(hall: VisitorFactory) -> None:
    visitor, page = await at_security(hall)
    cdp, key = await device(page)
    await add(page, "MacBook")
    link = page.locator('a.button[href*="/passkeys/"]')
    await expect(link).to_be_visible()
    await assert_accessible_everywhere(page, "passkeys")
    await link.click()
    await expect(page.locator("#field-name")).to_be_visible()
    await assert_accessible_everywhere(page, "one passkey")
    korean = [each.replace("/en/", "/ko/") for each in (page.url, named(visitor, SECURITY))]
    await assert_fits_phones_in("ko", page, korean)

    # A device that needs no finger would answer by itself.
    await cdp.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": key, "enabled": False})
    await lose_cookies(visitor)
    await page.goto(named(visitor, "/en/sign-in"))
    await expect(page.locator("[data-passkey-sign-in] button")).to_be_visible()
    await page.set_viewport_size(DESK)
    await assert_accessible_everywhere(page, "sign-in with a passkey")


async def test_a_press_before_the_script_of_passkeys_has_loaded_counts(hall: VisitorFactory) -> None:
    visitor, page = await at_security(hall)
    await device(page)
    script = await hold_requests(page, "**/chunks/passkeys-*")
    await page.reload()
    await page.locator("#field-passkey_name").fill("My laptop")
    await page.keyboard.press("Enter")
    script.set()
    await expect(page.get_by_text("The passkey was added.").first).to_be_visible()

    await lose_cookies(visitor)
    script = await hold_requests(page, "**/chunks/passkeys-*")
    await page.add_init_script(  # as on a slow device: the browser says late that its autofill can offer passkeys
        """PublicKeyCredential.isConditionalMediationAvailable =
            () => new Promise((answer) => setTimeout(answer, 100, true))"""
    )
    await page.goto(named(visitor, "/en/sign-in?next=/en/settings/security"))
    challenges = requests_to(page, "passkey", "POST")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    script.set()
    await page.wait_for_url(named(visitor, SECURITY))
    assert len(challenges) == 2  # one challenge and its response: the autofill asked for none
