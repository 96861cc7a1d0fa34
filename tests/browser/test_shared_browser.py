"""One browser, several people: what remains when one signs out, and what is moved when another signs in."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Browser, Page, Route, expect

from app.accounts.auth_sessions import revoke_all_auth_sessions
from app.db import Database
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory, program
from tests.browser.polling import wait_until
from tests.browser.signed_in_visitors import admit_signed_in, lose_cookies, sign_in, store_account_with_password
from tests.browser.site import Site

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
SECRET = "what Ada wrote"
PROGRAM = f"from IPython.display import HTML\nprint('{SECRET}')\nHTML('<p>{SECRET}</p>')"
NOT_RESTORED = "performance.getEntriesByType('navigation')[0].notRestoredReasons"


async def test_the_next_account_finds_nothing_of_the_one_that_signed_out(hall: VisitorFactory) -> None:
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    visitor.tolerated.append("status of 404")
    page = await visitor.open(LESSON)
    address = await write_and_run(page)
    await page.evaluate("localStorage.setItem('lockstep:theme', 'dark')")

    await sign_out(page)
    assert await kept(page) == {"lockstep:theme": "dark"}
    await page.go_back()
    await shows_nothing(page)

    await sign_in(page, visitor.site, await store_account_with_password(visitor.site, "Bob"))
    await page.goto(visitor.site.url(LESSON))
    await shows_nothing(page)
    assert SECRET not in str(await kept(page))
    answer = await page.goto(visitor.site.url(address))
    assert answer is not None
    assert answer.status == 404
    assert SECRET not in await page.content()


@pytest.mark.long
async def test_another_tab_forgets_when_its_account_signs_out(hall: VisitorFactory) -> None:
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    page, other = await visitor.open(LESSON), await visitor.open(LESSON)
    await write_and_run(page)
    cell = CellPageObject(other, "components")
    await cell.write(f"# {SECRET}")

    async with other.expect_event("load"):
        await sign_out(page)

    await shows_nothing(other)
    assert SECRET not in str(await kept(other))


async def test_signing_out_leads_to_the_front_page_whatever_happens_on_the_way(hall: VisitorFactory) -> None:
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    page = await visitor.open(LESSON)

    async def slowly(route: Route) -> None:
        await asyncio.sleep(0.5)
        await route.continue_()

    await page.evaluate(  # the cookie as the answer is about to set it, and what another tab's cleaning up leads to
        """addEventListener("submit", () => setTimeout(() => {
            document.cookie = "lockstep_account=signed-out; path=/";
            dispatchEvent(new Event("focus"));
        }, 100))"""
    )
    await page.route("**/sign-out", slowly)

    await sign_out(page)


async def test_a_form_without_a_page_for_an_answer_delays_forgetting_for_seconds_only(hall: VisitorFactory) -> None:
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    page = await visitor.page()
    await page.clock.install()
    await page.goto(visitor.site.url(LESSON))
    await expect(page.locator(".account-button")).to_contain_text("Ada Byron")

    await page.evaluate(
        """dispatchEvent(new Event("submit"));
        document.cookie = "lockstep_account=signed-out; path=/";
        dispatchEvent(new Event("focus"))"""
    )
    await expect(page.locator("body")).to_have_css("visibility", "hidden")
    async with page.expect_event("load"):
        await page.clock.run_for(10_000)

    await expect(page.locator("body")).to_have_css("visibility", "visible")


@pytest.mark.long
async def test_back_shows_no_page_that_the_browser_kept_of_an_account(chromium: Browser, site: Site) -> None:
    """A separate browser with the back/forward cache, which Playwright disables."""
    arguments = ["--disable-back-forward-cache", "--disable-features=BackForwardCache"]
    browser = await chromium.browser_type.launch(
        executable_path=program(whole=True), args=["--no-sandbox"], ignore_default_args=arguments
    )
    hall = VisitorFactory(browser, site)
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    page = await visitor.open(LESSON)
    await expect(page.locator(".account-button")).to_contain_text("Ada Byron")
    await CellPageObject(page, "strategy").write(f"# {SECRET}")
    await page.evaluate(
        "addEventListener('pageshow', ({persisted}) => document.documentElement.dataset.persisted = persisted)"
    )

    await page.add_init_script(
        """if (location.pathname === "/en/") new BroadcastChannel("lockstep:bell").onmessage =
            () => document.documentElement.dataset.told = "all tabs" """
    )
    await page.goto(site.url("/en/"))
    await expect(page.locator("html")).to_have_attribute("data-told", "all tabs")  # by its bell, which took the lock
    await go_back(page)
    await page.wait_for_url(site.url(LESSON), wait_until="commit")
    assert await page.evaluate(NOT_RESTORED) is None, "the browser did not keep the page, for these reasons"
    await expect(page.locator("html")).to_have_attribute("data-persisted", "true")
    await expect(page.locator("body")).to_have_css("visibility", "visible")

    visitor.tolerated.append("status of 404")  # the icon of the next page
    await page.goto(site.url("/healthz"))  # a page with a script would notice, and load itself again
    await visitor.context.clear_cookies()
    await go_back(page)
    await page.wait_for_url(site.url(LESSON), wait_until="commit")
    await shows_nothing(page)
    assert hall.visitors[0].unexpected() == []
    await browser.close()


async def test_a_visitors_edits_come_along_into_the_account(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    page = await visitor.open(LESSON)
    await CellPageObject(page, "strategy").write("print('mine')")

    await sign_in(page, visitor.site, await store_account_with_password(visitor.site))
    await page.goto(visitor.site.url(LESSON))

    await expect(CellPageObject(page, "strategy").editor).to_have_text("print('mine')")


@pytest.mark.long
async def test_a_sign_in_that_was_ended_elsewhere_is_forgotten_here(hall: VisitorFactory) -> None:
    visitor, account = await admit_signed_in(hall, "Ada Byron")
    page = await visitor.open(LESSON)
    await expect(page.locator(".account-button")).to_contain_text("Ada Byron")
    await CellPageObject(page, "strategy").write(f"# {SECRET}")
    await wait_until(page, f"Object.values(localStorage).some((value) => value.includes('{SECRET}'))")
    db = Database(visitor.site.database)
    async with db.writing() as session:
        await revoke_all_auth_sessions(session, account)
    await db.close()

    await page.reload()

    await expect(page.locator(".account-button")).to_have_text("Sign in")
    await shows_nothing(page)
    assert SECRET not in str(await kept(page))


@pytest.mark.long
async def test_a_sign_in_that_expired_keeps_the_edits_for_its_account_alone(hall: VisitorFactory) -> None:
    visitor, _ = await admit_signed_in(hall, "Ada Byron")
    page = await visitor.open(LESSON)
    await expect(page.locator(".account-button")).to_contain_text("Ada Byron")
    await CellPageObject(page, "strategy").write(f"# {SECRET}")
    await wait_until(page, f"Object.values(localStorage).some((value) => value.includes('{SECRET}'))")
    hers = await visitor.context.storage_state()

    await lose_cookies(visitor)
    await page.goto(visitor.site.url(LESSON))
    await shows_nothing(page)

    await visitor.context.add_cookies(hers["cookies"])  # type: ignore[arg-type]
    await page.reload()
    await expect(CellPageObject(page, "strategy").editor).to_have_text(f"# {SECRET}")


async def go_back(page: Page) -> None:
    """Press Back, once the page has answered that it will: it is gone afterwards.

    Playwright's own ``go_back`` waits in vain for the load of a page that comes from the browser's memory.
    """
    await page.evaluate("void setTimeout(() => history.back())")


async def write_and_run(page: Page) -> str:
    """Edit a cell and run it. Returns the path of the HTML that it showed."""
    await expect(page.locator(".account-button")).to_contain_text("Ada Byron")
    cell = CellPageObject(page, "strategy")
    await cell.write(PROGRAM)
    await cell.run()
    await cell.finished()
    frame = cell.root.locator("iframe")
    await expect(frame.content_frame.get_by_text(SECRET)).to_be_visible()
    return await frame.get_attribute("src") or ""


async def sign_out(page: Page) -> None:
    await page.locator(".account-button").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/en/")
    await expect(page.locator(".account-button")).to_have_text("Sign in")


async def shows_nothing(page: Page) -> None:
    """The lesson as a new visitor sees it."""
    await expect(page.locator(".session-state:not(.awaited)")).to_be_attached()  # every fragment and script has come
    await expect(page.locator("body")).to_have_css("visibility", "visible")
    await expect(page.locator("body")).not_to_contain_text(SECRET)
    await expect(page.locator(".output iframe")).to_have_count(0)
    await expect(page.locator(".cell[data-edited]")).to_have_count(0)


async def kept(page: Page) -> dict[str, str]:
    """Everything that the browser stores for us, except the empty name of an account."""
    found: dict[str, str] = await page.evaluate("({ ...localStorage })")
    return {name: value for name, value in found.items() if value and not name.startswith("lockstep:mark")}
